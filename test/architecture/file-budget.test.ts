import { describe, expect, test } from '@jest/globals';
import { figuresOf, linesOf, quantile } from './figures.js';
import { sourceFiles } from './source-tree.js';

/** Accepted small files with one importer beside them, with the reason. */
const SLICES: Readonly<Record<string, string>> = {
  'src/bundle/bundle-http.ts': 'loads when a server starts; its importer loads with every command',
  'src/http/stream-lines.ts': 'loaded when a file is asked for; unit tests run it without a database',
  'src/history/search/found-lines.ts':
    'the page that holds its session searches by it too, and runs of the house only what imports nothing',
  'src/lab/recordings/read-calls.ts': 'says which calls read files, whatever is counted',
  'src/redaction/published-rules.ts': 'only this file touches the library of rules, so that another can take its place',
  'src/review/cli/note.ts': 'what a verb runs is bundled by its file: no other verb needs notes',
  'src/review/cli/query.ts': 'what a verb runs is bundled by its file: no other verb needs the query language',
  'src/page/keys.ts': 'its one importer is the largest file of the page',
  'src/page/strip-changes.ts': 'unit tests run it without a browser, and follow.ts needs one',
  'src/page/unpacked-value.ts': 'unit tests run it without a browser, and embedded.ts needs one',
  'src/mcp-program.ts': 'the start of an MCP server loads this program instead of the whole one',
  'src/question-program.ts': 'a question about the past loads this program instead of the whole one',
};

const VAGUE = /(^|\/)(utils?|helpers?|manager|types|common|misc)\.ts$/;
const sizes = sourceFiles('src').map((file) => ({ path: file.path, lines: linesOf(file) }));
const share = (part: number): number =>
  quantile(
    sizes.map(({ lines }) => lines),
    part,
  );

describe('rooms of a natural size', () => {
  test('have no file over 400 lines', () => {
    expect(sizes.filter(({ lines }) => lines > 400)).toEqual([]);
  });

  test('have mostly files that can be read at once', () => {
    expect(share(0.5)).toBeLessThanOrEqual(180);
    expect(share(0.95)).toBeLessThanOrEqual(320);
  });

  test('name each file for its single content', () => {
    expect(sizes.filter(({ path }) => VAGUE.test(path))).toEqual([]);
  });

  test('keep code that is read together in one file: no slices', () => {
    expect(figuresOf(sourceFiles('src')).slices.filter((path) => SLICES[path] === undefined)).toEqual([]);
  });
});
