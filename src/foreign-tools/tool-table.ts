/**
 * The purpose of a tool, named after our own tool that does the same [§5.1]. As far as known,
 * `other` does not touch files.
 */
export type ToolKind = 'read' | 'write' | 'edit' | 'patch' | 'list' | 'glob' | 'grep' | 'tree' | 'shell' | 'other';

/** How an output names files. `words`: anywhere in running text. */
export type ListingFormat = 'paths' | 'listing' | 'long-listing' | 'matches' | 'words';

interface ToolRow {
  readonly kind: ToolKind;
  /** The tools' names in lower case and without separators. Spaces separate the names. */
  readonly names: string;
  /** How the output names files, if it does. */
  readonly lists?: ListingFormat;
}

/**
 * The tools of the known harnesses, grouped by form. Tools of one form take the same arguments
 * (`tool-arguments`) and give output in the same format (`read-output`, `listed-names`,
 * `shell-call`).
 */
const FORMS = {
  'read-file': {
    kind: 'read',
    names: 'read readfile readtextfile view viewfile open openfile cat fileread fsread getfilecontents notebookread',
  },
  'read-files': { kind: 'read', names: 'readfiles readmanyfiles readmultiplefiles' },
  /** Moves a window over the open file. The call names no file. */
  'move-window': { kind: 'read', names: 'goto scrollup scrolldown' },
  'view-image': { kind: 'read', names: 'viewimage' },
  'write-file': { kind: 'write', names: 'write writefile writetofile create createfile savefile fswrite filewrite' },
  'delete-file': { kind: 'write', names: 'deletefile' },
  'move-file': { kind: 'write', names: 'movefile' },
  'edit-file': {
    kind: 'edit',
    names:
      'edit multiedit editfile fileedit replace strreplace searchreplace searchandreplace replaceinfile insert ' +
      'insertcontent',
  },
  /** Creates the file if the call has no old text. */
  'edit-or-create': { kind: 'edit', names: 'editor' },
  /**
   * The argument `command` selects the action: `view`, `create`, `str_replace`, `insert` or
   * `undo_edit`.
   */
  'edit-by-command': { kind: 'edit', names: 'strreplaceeditor strreplacebasededittool fileeditor' },
  'edit-notebook': { kind: 'edit', names: 'notebookedit editnotebook' },
  'undo-edit': { kind: 'edit', names: 'undoedit' },
  'apply-patch': { kind: 'patch', names: 'applypatch patch applydiff applyedits' },
  'list-folder': {
    kind: 'list',
    names: 'ls list listdir listdirectory listdirectorywithsizes listfiles listfolder dir readdir readdirectory',
    lists: 'listing',
  },
  'list-tree': { kind: 'tree', names: 'tree directorytree foldertree listtree', lists: 'listing' },
  'find-files': {
    kind: 'glob',
    names: 'glob globfilesearch find findfile findfiles filesearch searchfiles fd',
    lists: 'paths',
  },
  'search-text': {
    kind: 'grep',
    names:
      'grep greptool grepsearch grepfiles rg ripgrep search searchdir searchtext searchcontent ' +
      'searchfilecontent searchcodebase findinfiles',
    lists: 'matches',
  },
  /** Semantic search. Its outputs have no common format. */
  'search-index': { kind: 'grep', names: 'codebasesearch codesearch', lists: 'matches' },
  /** Lists matches in one file, which the output does not name. */
  'search-in-file': { kind: 'grep', names: 'searchfile', lists: 'matches' },
  'run-shell': {
    kind: 'shell',
    names:
      'bash sh zsh shell powershell terminal localshell shellcommand run cmdrun execute executebash execcommand ' +
      'executecommand runcommand runcommands runshellcommand runinterminal runterminalcmd runterminalcommand ' +
      'containerexec',
    lists: 'words',
  },
  /** Runs code in any language. It may change any file. */
  'run-code': { kind: 'other', names: 'exec python ipython runipython executeipythoncell', lists: 'words' },
  /** Types into a running program, or reads what the program has written. */
  'type-input': { kind: 'other', names: 'writestdin', lists: 'words' },
  /** Starts another agent, which may change any file. */
  delegate: { kind: 'other', names: 'task agent wait' },
} as const satisfies Readonly<Record<string, ToolRow>>;

/** The form of a tool; `unknown` for a tool with an unknown name. */
export type ToolForm = keyof typeof FORMS | 'unknown';

/** The properties of a tool that follow from its name. */
interface ForeignTool {
  readonly form: ToolForm;
  readonly kind: ToolKind;
  /** How its output names files; undefined if it names none. */
  readonly lists: ListingFormat | undefined;
}

const rows: readonly (readonly [string, ToolRow])[] = Object.entries(FORMS);
const BY_NAME: ReadonlyMap<string, ForeignTool> = new Map(
  rows.flatMap(([form, { kind, names, lists }]) =>
    names.split(' ').map((name) => [name, { form: form as ToolForm, kind, lists }] as const),
  ),
);
const UNKNOWN: ForeignTool = { form: 'unknown', kind: 'other', lists: undefined };

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/**
 * Identifies a tool by its name in any spelling, such as `Read` or `read_file`. The name may have
 * the prefix of an MCP server: `mcp__fs__read_file`, `fs.read_file`, `fs/read_file`.
 */
export function foreignTool(name: string): ForeignTool {
  const last = name.split(/__|[./:]/).at(-1) ?? name;
  return BY_NAME.get(bare(name)) ?? BY_NAME.get(bare(last)) ?? UNKNOWN;
}
