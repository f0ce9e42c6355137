import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, projectRoot as root } from './bundle.mjs';

/** The file that the vocabulary lies in, packed. */
const RANKS = 'o200k_base.ranks';
const TABLE = 'src/history/ask/rank-table.ts';

/** Packs the list of the library that counts tokens as a table that is read in place (`rank-table.ts`), and writes it into a folder. */
export async function writeVocabulary(folder) {
  const packer = join(folder, 'packer');
  await bundle({ entryPoints: [TABLE], outdir: packer, splitting: false, outExtension: { '.js': '.mjs' } });
  const [{ packRanks }, { default: ranks }] = await Promise.all([
    import(pathToFileURL(join(packer, 'rank-table.mjs')).href),
    import('gpt-tokenizer/bpeRanks/o200k_base'),
  ]);
  rmSync(packer, { recursive: true });
  writeFileSync(join(folder, RANKS), packRanks(ranks));
}

/**
 * Where the library makes a map of 200,000 texts each time that it is loaded; it asks the map for the ranks of texts alone. Its list it goes through once, by `forEach`, which
 * a map of what is no text has as well.
 */
const MAP = 'this.bytePairStringRankEncoder = /* @__PURE__ */ new Map();';

/**
 * Has the library look texts up in the packed vocabulary, which takes 5 ms to load. Its own list, and the map that it makes of it, take 130 to 200 ms of the processor
 * and 40 MB. `folder` is that of the vocabulary, from the bundled files.
 */
export const packedVocabulary = (folder) => ({
  name: 'packed-vocabulary',
  setup(build) {
    build.onResolve({ filter: /\/bpeRanks\/o200k_base\.js$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      namespace: 'packed',
    }));
    build.onLoad({ filter: /.*/, namespace: 'packed' }, ({ path }) => ({
      resolveDir: dirname(path),
      contents: `
        import { readFileSync } from 'node:fs';
        import { openRanks } from ${JSON.stringify(join(root, TABLE))};
        const table = openRanks(readFileSync(new URL('${folder}/${RANKS}', import.meta.url)));
        export default Object.assign(table.bytes, { table });`,
    }));
    build.onLoad({ filter: /gpt-tokenizer\/esm\/BytePairEncodingCore\.js$/ }, ({ path }) => {
      const [before, after, ...more] = readFileSync(path, 'utf8').split(MAP);
      if (after === undefined || more.length > 0) throw new Error(`${path} makes its map of texts elsewhere than it did`);
      return { contents: `${before}this.bytePairStringRankEncoder = bytePairRankDecoder.table;${after}` };
    });
  },
});
