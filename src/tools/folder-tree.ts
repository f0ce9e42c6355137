/** The folders and files in a folder. */
interface Branch {
  readonly folders: Map<string, Branch>;
  readonly files: string[];
}

const branch = (): Branch => ({ folders: new Map(), files: [] });

function grow(paths: readonly string[]): Branch {
  const top = branch();
  for (const path of paths) {
    const names = path.split('/');
    const file = names.pop() ?? '';
    let at = top;
    for (const name of names) {
      let next = at.folders.get(name);
      if (next === undefined) {
        next = branch();
        at.folders.set(name, next);
      }
      at = next;
    }
    at.files.push(file);
  }
  return top;
}

function countFiles({ folders, files }: Branch): number {
  return files.length + [...folders.values()].reduce((sum, folder) => sum + countFiles(folder), 0);
}

/** The lines of a tree, and the files that they name. */
interface TreeLines {
  readonly lines: readonly string[];
  /** Relative paths of the files that have a line. */
  readonly named: readonly string[];
}

/**
 * Renders files as a tree. Each level is indented by one space. Folders come first and end with a
 * slash. A folder at `depth` levels becomes one line with its number of files.
 */
export function treeLines(paths: readonly string[], depth: number, shown: (name: string) => string): TreeLines {
  const lines: string[] = [];
  const named: string[] = [];
  const visit = ({ folders, files }: Branch, level: number, prefix: string): void => {
    const indent = ' '.repeat(level);
    for (const [name, folder] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (level + 1 >= depth) {
        const count = countFiles(folder);
        lines.push(`${indent}${shown(name)}/ (${count} ${count === 1 ? 'file' : 'files'})`);
      } else {
        lines.push(`${indent}${shown(name)}/`);
        visit(folder, level + 1, `${prefix}${name}/`);
      }
    }
    for (const file of files) {
      lines.push(`${indent}${shown(file)}`);
      named.push(`${prefix}${file}`);
    }
  };
  visit(grow(paths), 0, '');
  return { lines, named };
}
