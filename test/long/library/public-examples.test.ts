import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const run = promisify(execFile);

/** Every value that the library exports, with its source file. */
const exported = [
  ...readFileSync('src/index.ts', 'utf8').matchAll(/^export (type )?\{([^}]+)\} from '\.\/(.+)\.js';$/gm),
]
  .filter(([, isType]) => isType === undefined)
  .flatMap(([, , names = '', file = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && !name.startsWith('type '))
      .map((name) => ({ name, file: `src/${file}.ts` })),
  );

/** The code of the example in the docstring of an exported value. */
function exampleOf(name: string, file: string): string | undefined {
  const text = readFileSync(file, 'utf8');
  const declared = text.search(new RegExp(`^export (async )?(function|class|const) ${name}\\b`, 'm'));
  const docstring = text.slice(text.lastIndexOf('/**', declared), declared);
  return /@example\n \* ```ts\n((?: \* .*\n)+) \* ```\n/.exec(docstring)?.[1]?.replaceAll(/^ \* /gm, '');
}

/** Values that an example takes from its surroundings. */
const GIVEN = `
declare const address: p.NodeAddress;
declare const client: p.ContextClient;
declare const document: Readonly<Record<string, unknown>>;
declare const error: unknown;
declare const harness: p.HarnessClient;
declare const id: string;
declare const metadata: p.ObjectMetadata;
declare const show: (text: string) => void;
declare const store: p.ObjectStore;
declare const timeline: p.Timeline;
`;

test('every value of the library has an example, and all examples compile [issue: public docstrings]', async () => {
  const examples = exported.map(({ name, file }) => ({ name, code: exampleOf(name, file) }));
  expect(examples.filter(({ code }) => code === undefined).map(({ name }) => name)).toEqual([]);
  expect(examples.length).toBeGreaterThan(30);
  const folder = await mkdtemp(join(process.cwd(), 'test', 'examples-'));
  try {
    const parts = examples.map(({ code }, n) => `export async function example${n}() {\n${code}}\n`);
    const names = examples.map(({ name }) => name).join(', ');
    const imports = `import type * as p from '../../src/index.js';\nimport { ${names} } from '../../src/index.js';\n`;
    await writeFile(join(folder, 'all.ts'), `${imports}${GIVEN}${parts.join('')}`);
    const compiler = { noEmit: true, noUnusedLocals: false, noUnusedParameters: false, incremental: false };
    const project = {
      extends: '../../tsconfig.json',
      compilerOptions: compiler,
      include: ['all.ts', '../../src/**/*.d.ts'],
    };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
    const { stdout } = await run('npx', ['tsc', '-p', folder]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
