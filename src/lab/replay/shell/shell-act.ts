/** Lines of a file that a command prints, from 1; both ends included, open where undefined. */
export interface LineRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** How an output that names files is laid out. */
export type NamesLayout = 'paths' | 'listing' | 'long-listing' | 'matches';

/** What one command of a script does, as far as it can be told without running it; paths as the script names them. */
export type ShellAct =
  /** Prints a file: all of it where there is no range. */
  | { readonly kind: 'show'; readonly path: string; readonly range: LineRange | undefined; readonly exact: boolean }
  /** Its output names files, below a folder where the names are relative to that. */
  | { readonly kind: 'list'; readonly layout: NamesLayout; readonly folder: string; readonly targets: readonly string[] }
  /** Needs the file to be there, shows nothing of it that could be taken up. */
  | { readonly kind: 'name'; readonly path: string }
  | { readonly kind: 'write'; readonly path: string; readonly text: string; readonly append: boolean }
  /** Changes the file in a way that is not followed. */
  | { readonly kind: 'change'; readonly path: string }
  | { readonly kind: 'remove'; readonly path: string; readonly folders: boolean }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'copy'; readonly from: string; readonly to: string }
  /** May change any file. */
  | { readonly kind: 'anything' };

/** What one command, or a pipeline up to it, does and whether it prints. */
export interface CommandActs {
  readonly acts: readonly ShellAct[];
  readonly prints: boolean;
}
