import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, projectRoot as root } from './bundle.mjs';

/** The file name of the packed vocabulary. */
const RANKS = 'o200k_base.ranks';
const TABLE = 'src/review/ask/rank-table.ts';

/**
 * Packs the rank list of the token-counting library into a table that is read in place
 * (`rank-table.ts`), and writes it into a folder.
 */
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
 * The line of the library that creates a map of 200,000 texts at each load. The library uses the
 * map only for ranks of texts. It iterates over its list once with `forEach`, which a map of the
 * other tokens also has.
 */
const MAP = 'this.bytePairStringRankEncoder = /* @__PURE__ */ new Map();';

/**
 * Returns an esbuild plugin that makes the library read ranks from the packed vocabulary. Loading
 * then takes 5 ms of CPU time. The library's own list and map take 130 to 200 ms and 40 MB of
 * memory.
 *
 * `folder` is the vocabulary's folder, seen from the bundled files.
 */
export const packedVocabulary = (folder) => ({
  name: 'packed-vocabulary',
  setup(build) {
    build.onResolve({ filter: /\/bpeRanks\/o200k_base\.js$/ }, ({ path, resolveDir }) => ({
      // A comment in the bundle contains this path.
      path: relative(root, join(resolveDir, path)),
      namespace: 'packed',
    }));
    build.onLoad({ filter: /.*/, namespace: 'packed' }, ({ path }) => ({
      resolveDir: join(root, dirname(path)),
      contents: `
        import { readFileSync } from 'node:fs';
        import { openRanks } from ${JSON.stringify(join(root, TABLE))};
        const table = openRanks(readFileSync(new URL('${folder}/${RANKS}', import.meta.url)));
        export default Object.assign(table.bytes, { table });`,
    }));
    build.onLoad({ filter: /gpt-tokenizer\/esm\/BytePairEncodingCore\.js$/ }, ({ path }) => {
      const [before, after, ...more] = readFileSync(path, 'utf8').split(MAP);
      if (after === undefined || more.length > 0)
        throw new Error(`${path} builds its map of texts in an unknown place: adapt the pattern to the new version`);
      return { contents: `${before}this.bytePairStringRankEncoder = bytePairRankDecoder.table;${after}` };
    });
  },
});
