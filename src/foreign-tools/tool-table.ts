/** What a tool is for, named after our own tools where one is like it [§5.1]; `other` touches no file as far as anybody knows. */
export type ToolKind = 'read' | 'write' | 'edit' | 'patch' | 'list' | 'glob' | 'grep' | 'tree' | 'shell' | 'other';

/** How an output that names files is laid out; `words`: anywhere in a running text. */
export type ListingFormat = 'paths' | 'listing' | 'long-listing' | 'matches' | 'words';

interface ToolRow {
  readonly kind: ToolKind;
  /** Names in lower case without separators, with a space between. */
  readonly names: string;
  /** How the output names files, where it does. */
  readonly lists?: ListingFormat;
}

/**
 * The tools of the harnesses that we know. A form is one way of being called: tools of one form take the same arguments (`tool-arguments`) and answer in the
 * same way (`read-output`, `listed-names`, `shell-call`).
 */
const FORMS = {
  'read-file': {
    kind: 'read',
    names: 'read readfile readtextfile view viewfile open openfile cat fileread fsread getfilecontents notebookread',
  },
  'read-files': { kind: 'read', names: 'readfiles readmanyfiles readmultiplefiles' },
  /** Moves the window on the file that is open, and names none. */
  'move-window': { kind: 'read', names: 'goto scrollup scrolldown' },
  'view-image': { kind: 'read', names: 'viewimage' },
  'write-file': { kind: 'write', names: 'write writefile writetofile create createfile savefile fswrite filewrite' },
  'delete-file': { kind: 'write', names: 'deletefile' },
  'move-file': { kind: 'write', names: 'movefile' },
  'edit-file': {
    kind: 'edit',
    names: 'edit multiedit editfile fileedit replace strreplace searchreplace searchandreplace replaceinfile insert insertcontent',
  },
  /** Without an old text it makes the file. */
  'edit-or-create': { kind: 'edit', names: 'editor' },
  /** `command` says what it does: `view`, `create`, `str_replace`, `insert`, `undo_edit`. */
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
  'find-files': { kind: 'glob', names: 'glob globfilesearch find findfile findfiles filesearch searchfiles fd', lists: 'paths' },
  'search-text': {
    kind: 'grep',
    names:
      'grep greptool grepsearch grepfiles rg ripgrep search searchdir searchtext searchcontent searchfilecontent searchcodebase findinfiles',
    lists: 'matches',
  },
  /** By meaning; its answers have no common format. */
  'search-index': { kind: 'grep', names: 'codebasesearch codesearch', lists: 'matches' },
  /** The matches of one file, which the answer does not repeat. */
  'search-in-file': { kind: 'grep', names: 'searchfile', lists: 'matches' },
  'run-shell': {
    kind: 'shell',
    names:
      'bash sh zsh shell powershell terminal localshell shellcommand run cmdrun execute executebash execcommand executecommand runcommand runcommands runshellcommand runinterminal runterminalcmd runterminalcommand containerexec',
    lists: 'words',
  },
  /** Code of any language, which may change any file. */
  'run-code': { kind: 'other', names: 'exec python ipython runipython executeipythoncell', lists: 'words' },
  /** Types into a program that runs, or reads what it has printed since. */
  'type-input': { kind: 'other', names: 'writestdin', lists: 'words' },
  /** Another agent works, and may change any file. */
  delegate: { kind: 'other', names: 'task agent wait' },
} as const satisfies Readonly<Record<string, ToolRow>>;

/** A way of being called; `unknown` for a name that says nothing. */
export type ToolForm = keyof typeof FORMS | 'unknown';

/** What the name of a tool says about it. */
interface ForeignTool {
  readonly form: ToolForm;
  readonly kind: ToolKind;
  /** How its output names files; undefined where it names none. */
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
 * What a tool is by its name in any spelling: `Read`, `read_file`, and with the name of an MCP server in front `mcp__fs__read_file`, `fs.read_file`,
 * `fs/read_file`.
 */
export function foreignTool(name: string): ForeignTool {
  const last = name.split(/__|[./:]/).at(-1) ?? name;
  return BY_NAME.get(bare(name)) ?? BY_NAME.get(bare(last)) ?? UNKNOWN;
}
