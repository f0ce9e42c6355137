/** What a reported tool does to files, as far as it can be seen from outside [§5.1, §5.6]. */
export type ToolKind = 'read' | 'list' | 'find' | 'search' | 'tree' | 'write' | 'patch' | 'shell' | 'other';

/** Names under which harnesses offer their tools, in lower case without separators. */
const NAMES: Readonly<Record<Exclude<ToolKind, 'other'>, readonly string[]>> = {
  read: [
    'read',
    'readfile',
    'readtextfile',
    'readmultiplefiles',
    'readmanyfiles',
    'readfiles',
    'view',
    'viewfile',
    'cat',
    'open',
    'openfile',
    'fileread',
    'fsread',
    'getfilecontents',
    'notebookread',
  ],
  list: ['ls', 'list', 'listdir', 'listdirectory', 'listdirectorywithsizes', 'listfiles', 'listfolder', 'dir', 'readdir', 'readdirectory'],
  find: ['glob', 'find', 'findfiles', 'findfile', 'filesearch', 'globfilesearch', 'searchfiles', 'fd'],
  search: [
    'grep',
    'search',
    'rg',
    'ripgrep',
    'grepsearch',
    'grepfiles',
    'searchtext',
    'searchfilecontent',
    'searchcontent',
    'findinfiles',
    'codebasesearch',
    'codesearch',
  ],
  tree: ['tree', 'directorytree', 'foldertree', 'listtree'],
  write: [
    'write',
    'writefile',
    'writetofile',
    'createfile',
    'create',
    'savefile',
    'fswrite',
    'filewrite',
    'edit',
    'editfile',
    'multiedit',
    'fileedit',
    'editnotebook',
    'notebookedit',
    'strreplace',
    'strreplaceeditor',
    'strreplacebasededittool',
    'searchreplace',
    'searchandreplace',
    'replace',
    'replaceinfile',
    'insert',
    'insertcontent',
    'deletefile',
    'movefile',
    'undoedit',
  ],
  patch: ['applypatch', 'patch', 'applydiff', 'applyedits'],
  shell: [
    'bash',
    'sh',
    'shell',
    'zsh',
    'powershell',
    'terminal',
    'exec',
    'execute',
    'execcommand',
    'executecommand',
    'runcommand',
    'runcommands',
    'runinterminal',
    'runterminalcmd',
    'runterminalcommand',
    'runshellcommand',
    'localshell',
    'containerexec',
  ],
};

const BY_NAME: ReadonlyMap<string, ToolKind> = new Map(
  Object.entries(NAMES).flatMap(([kind, names]) => names.map((name) => [name, kind as ToolKind] as const)),
);

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** The kind of a tool by its name, whatever its spelling (`Read`, `read_file`, `mcp__fs__read_file`); `other` for a name that says nothing. */
export function toolKind(name: string): ToolKind {
  const whole = BY_NAME.get(bare(name));
  if (whole !== undefined) return whole;
  // Tools of MCP servers carry the server's name: mcp__server__tool, server.tool, server/tool.
  const last = name.split(/__|[./:]/).at(-1) ?? name;
  return BY_NAME.get(bare(last)) ?? 'other';
}
