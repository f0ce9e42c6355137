/** Commands of git that put a commit's files into the working tree. */
export const GIT_MOVES = ['checkout', 'merge', 'pull', 'reset', 'rebase', 'cherry-pick', 'revert', 'am'] as const;
/** Editors whose saves leave traces beside the file. */
export const EDITORS = ['Vim', 'Emacs', 'Kate', 'JetBrains'] as const;
/** The name of an editor. */
export type Editor = (typeof EDITORS)[number];

/**
 * The author of a file version that no recorded call wrote, with the evidence found when the
 * version was written. Without evidence, a version has no author.
 */
export type FileAuthor =
  /** The content is that of the file in `commit`, to which the command moved HEAD at that time. */
  | { readonly kind: 'git'; readonly action: (typeof GIT_MOVES)[number]; readonly commit: string }
  /** Files that this editor creates during a save appeared and disappeared beside the file. */
  | { readonly kind: 'editor'; readonly editor: Editor };
