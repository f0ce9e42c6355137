import { describe, expect, test } from '@jest/globals';
import { readShell } from '../../../../src/harness/tool-output/shell-acts.js';

const acts = (script: string) =>
  readShell(script).acts.map(({ act, folder }) => ({ ...act, ...(folder === '.' ? {} : { folder }) }));
const kinds = (script: string) => readShell(script).acts.map(({ act }) => act.kind);
const show = (path: string, range?: object, exact = true) => ({ kind: 'show', path, range, exact });

describe('shell commands that only read', () => {
  test.each([
    ['cat a.ts', [show('a.ts')]],
    ["cat 'a b.ts'", [show('a b.ts')]],
    ['cat -n a.ts', [show('a.ts', undefined, false)]],
    ["sed -n '10,20p' a.ts", [show('a.ts', { from: 10, to: 20 })]],
    ["sed -n '7p' a.ts", [show('a.ts', { from: 7, to: 7 })]],
    ["sed -n '5,$p' a.ts", [show('a.ts', { from: 5, to: undefined })]],
    ['head -n 30 a.ts', [show('a.ts', { from: 1, to: 30 })]],
    ['head -5 a.ts', [show('a.ts', { from: 1, to: 5 })]],
    ['head a.ts', [show('a.ts', { from: 1, to: 10 })]],
    ['tail -n +5 a.ts', [show('a.ts', { from: 5 })]],
    ['cat a.ts | head -n 3', [show('a.ts', { from: 1, to: 3 })]],
    ["nl -ba a.ts | sed -n '3,4p'", [show('a.ts', { from: 3, to: 4 }, true)]],
    ["sed -n '10,20p' a.ts | head -n 3", [show('a.ts', { from: 10, to: 12 })]],
    ["bash -lc 'cat a.ts'", [show('a.ts')]],
    ['cat a.ts 2>/dev/null', [show('a.ts')]],
  ])('become acts that show files: %s', (script, expected) => {
    expect(acts(script)).toEqual(expected);
  });

  test('show only the existence of several files at once', () => {
    expect(acts('cat a.ts b.ts')).toEqual([
      { kind: 'name', path: 'a.ts' },
      { kind: 'name', path: 'b.ts' },
    ]);
  });

  test('show only the existence of a file behind a filter that changes the output', () => {
    expect(acts('cat a.ts | sort -u')).toEqual([{ kind: 'name', path: 'a.ts' }]);
    expect(acts('tail -n 5 a.ts')).toEqual([{ kind: 'name', path: 'a.ts' }]);
    expect(acts('wc -l a.ts')).toEqual([{ kind: 'name', path: 'a.ts' }]);
  });

  test('name files by their output if they list', () => {
    expect(acts('rg --files src')).toMatchObject([{ kind: 'list', format: 'paths', targets: ['src'] }]);
    expect(acts('git ls-files')).toMatchObject([{ kind: 'list', format: 'paths' }]);
    expect(acts('find . -name "*.ts" -type f | head')).toMatchObject([{ kind: 'list', format: 'paths' }]);
    expect(acts('ls -la src')).toMatchObject([{ kind: 'list', format: 'long-listing', folder: 'src' }]);
    expect(acts('rg -n "foo|bar" src lib')).toMatchObject([
      { kind: 'list', format: 'matches', targets: ['src', 'lib'] },
    ]);
    expect(acts('grep -rl foo src')).toMatchObject([{ kind: 'list', format: 'paths' }]);
  });

  test('do nothing to files if they show none', () => {
    expect(kinds('git status && go test ./... | tail -5; echo done')).toEqual([]);
    expect(kinds('find . -name x')).toEqual([]);
  });

  test('follow the folder of the script', () => {
    expect(acts('cd src && cat a.ts && cd deep && cat b.ts')).toEqual([
      { ...show('a.ts'), folder: 'src' },
      { ...show('b.ts'), folder: 'src/deep' },
    ]);
    expect(readShell('cd src && cat a.ts').printing).toBe(1);
    expect(readShell('cat a.ts; cat b.ts').printing).toBe(2);
  });
});

describe('shell commands that change files', () => {
  test('are followed if the text is known', () => {
    expect(acts("cat <<'EOF' > a.ts\nconst x = `$y`;\nEOF")).toEqual([
      { kind: 'write', path: 'a.ts', text: 'const x = `$y`;\n' },
    ]);
    expect(acts("cat >> a.ts <<'EOF'\nmore\nEOF")).toEqual([{ kind: 'append', path: 'a.ts', text: 'more\n' }]);
    expect(acts('rm -rf build a.ts')).toEqual([
      { kind: 'delete', path: 'build', folder: true },
      { kind: 'delete', path: 'a.ts', folder: true },
    ]);
    expect(acts('mv a.ts b.ts && cp b.ts c.ts')).toEqual([
      { kind: 'move', from: 'a.ts', to: 'b.ts' },
      { kind: 'copy', from: 'b.ts', to: 'c.ts' },
    ]);
    expect(acts('mv a.ts x/b.ts dir/')).toEqual([
      { kind: 'move', from: 'a.ts', to: 'dir/a.ts' },
      { kind: 'move', from: 'x/b.ts', to: 'dir/b.ts' },
    ]);
  });

  test('are followed if they are a patch, as an argument or as the input', () => {
    const envelope = '*** Begin Patch\n*** Update File: a.ts\n@@\n-one\n+two\n*** End Patch\n';
    const hunks = [{ contexts: [], before: ['one'], after: ['two'], atEnd: false }];
    const update = { kind: 'update', path: 'a.ts', moveTo: undefined, hunks };
    expect(acts(`apply_patch <<'EOF'\n${envelope}EOF`)).toEqual([update]);
    expect(acts(`cd src && apply_patch <<'EOF'\n${envelope}EOF`)).toEqual([{ ...update, folder: 'src' }]);
    expect(acts(`apply_patch '${envelope}'`)).toEqual([update]);
    expect(kinds("apply_patch <<'EOF'\nnone\nEOF")).toEqual(['anything']);
    const diff = '--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n-one\n+two\n';
    for (const command of ['git apply', 'git apply -', 'patch -p1'])
      expect(acts(`${command} <<'EOF'\n${diff}EOF`)).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(kinds('git apply fix.patch')).toEqual(['anything']);
  });

  test('are followed if they replace plain text in each line', () => {
    const substitute = (path: string, from: string, to: string, all: boolean) => ({
      ...{ kind: 'substitute', path, from, to, all },
    });
    expect(acts("sed -i 's/a/b/' a.ts b.ts")).toEqual([
      substitute('a.ts', 'a', 'b', false),
      substitute('b.ts', 'a', 'b', false),
    ]);
    expect(acts("sed -i '' 's/a/b/g' a.ts")).toEqual([substitute('a.ts', 'a', 'b', true)]);
    expect(acts("sed -i.bak 's|src\\/a\\.ts|x(y)|' a.ts")).toEqual([substitute('a.ts', 'src/a.ts', 'x(y)', false)]);
  });

  test('are followed if their text comes from echo or through tee', () => {
    expect(acts('echo hi you > a.ts')).toEqual([{ kind: 'write', path: 'a.ts', text: 'hi you\n' }]);
    expect(acts('echo hi >> a.ts')).toEqual([{ kind: 'append', path: 'a.ts', text: 'hi\n' }]);
    const there = "<<'EOF'\none\nEOF";
    expect(acts(`tee a.ts b.ts ${there}`)).toEqual([
      { kind: 'write', path: 'a.ts', text: 'one\n' },
      { kind: 'write', path: 'b.ts', text: 'one\n' },
    ]);
    expect(acts('echo hi | tee -a a.ts > /dev/null')).toEqual([{ kind: 'append', path: 'a.ts', text: 'hi\n' }]);
    expect(acts('echo hi | grep h | tee a.ts')).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(acts('git mv a.ts b.ts && git rm c.ts')).toEqual([
      { kind: 'move', from: 'a.ts', to: 'b.ts' },
      { kind: 'delete', path: 'c.ts', folder: false },
    ]);
  });

  test('leave the file unknown if they are not followed', () => {
    expect(acts("sed -i 's/a.*/b/' a.ts b.ts")).toEqual([
      { kind: 'change', path: 'a.ts' },
      { kind: 'change', path: 'b.ts' },
    ]);
    for (const script of ['s/a./b/', 's/a/[&]/', '3s/a/b/', 's/a/b/;s/c/d/', 's/a/b/I', 's/a\\+/b/', '/a/d'])
      expect([script, acts(`sed -i '${script}' a.ts`)]).toEqual([script, [{ kind: 'change', path: 'a.ts' }]]);
    expect(acts("sed -Ei 's/a+/b/' a.ts")).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(acts('ls > a.ts')).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(acts('echo -e hi > a.ts')).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(acts('cat <<EOF > a.ts\n$HOME\nEOF')).toEqual([{ kind: 'change', path: 'a.ts' }]);
    expect(acts('cat a.ts | tee b.ts')).toEqual([
      { kind: 'name', path: 'a.ts' },
      { kind: 'change', path: 'b.ts' },
    ]);
  });

  test.each([
    'npm run build',
    'git checkout main',
    'rm *.ts',
    'for f in *; do cat $f; done',
    'cat a.ts | xargs rm',
    'python fix.py',
    'echo "unterminated',
    'sleep 1 & cat a.ts',
    'find . -name x -delete',
    '$EDITOR a.ts',
    'grep -q x a.ts || cat > b.ts <<EOF\nnew\nEOF',
    'test -f a.ts || rm b.ts',
    'test -f a.ts || true && rm b.ts',
    '! rm b.ts',
    'echo "$(sed -i s/a/b/ a.ts)"',
    'X=$(make gen) echo done',
    'cat <(make gen)',
    `echo "\${X:-$(make gen)}"`,
    'env A=1 make',
    'command make',
    'source ./fix.sh',
    "awk -i inplace '{print}' a.ts",
    'yq -i .a=1 a.yaml',
    'sort --output=a.txt a.txt',
    'curl -o a.ts http://localhost/a.ts',
    'tree -o a.txt',
    'npx jest -u',
  ])('may change any file otherwise: %s', (script) => {
    expect(kinds(script)).toContain('anything');
  });

  test('prove nothing behind ||, and change nothing by reading inside words', () => {
    expect(acts('cat a.ts || cat b.ts')).toEqual([show('a.ts')]);
    expect(acts('cat a.ts || true')).toEqual([show('a.ts')]);
    expect(acts('echo "$(git log -1)"')).toEqual([]);
    expect(acts('cd "$(git rev-parse --show-toplevel)" && ls')).toEqual([
      { kind: 'list', format: 'listing', folder: '\0', targets: ['.'] },
    ]);
    expect(kinds('source venv/bin/activate && cat a.ts')).toEqual(['show']);
  });

  test('are never executed', () => {
    expect(kinds('touch /tmp/palimpsest-was-run; $(touch /tmp/palimpsest-was-run)')).toContain('anything');
  });
});
