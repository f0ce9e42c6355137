/** Commands of git that put a commit's files into the working tree. */
export const GIT_MOVES = ['checkout', 'merge', 'pull', 'reset', 'rebase', 'cherry-pick', 'revert', 'am'] as const;
/** Editors whose saves leave traces beside the file. */
export const EDITORS = ['Vim', 'Emacs', 'Kate', 'JetBrains'] as const;
/** The name of an editor. */
export type Editor = (typeof EDITORS)[number];

/**
 * The author of a file version that no recorded call wrote, with the evidence found when the
 * version was written. Without evidence a version has none.
 */
export type FileAuthor =
  /** The content is that of the file in `commit`, and the command moved HEAD there then. */
  | { readonly kind: 'git'; readonly action: (typeof GIT_MOVES)[number]; readonly commit: string }
  /** The files that this editor makes during a save came and went beside the file. */
  | { readonly kind: 'editor'; readonly editor: Editor };
