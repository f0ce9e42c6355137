import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RecordingError } from '../../../../src/lab/recordings/open-recording.js';
import { effort } from '../../../support/effort.js';
import { bytesSource, importAll, recordingPath } from '../../../support/recordings.js';

const LINE_RECORDINGS = ['claude-code', 'codex', 'pi'].flatMap((format) =>
  readdirSync(recordingPath(format)).map((file) => `${format}/${file}`),
);

/** Replaces a value in a record. At each level the next number picks the key. */
function damage(value: unknown, path: readonly number[], other: unknown): unknown {
  const [step, ...rest] = path;
  if (typeof value !== 'object' || value === null || step === undefined) return other;
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length === 0) return other;
  const at = step % entries.length;
  const changed = entries.map(([key, item], index): [string, unknown] => [
    key,
    index === at ? damage(item, rest, other) : item,
  ]);
  return Array.isArray(value) ? changed.map(([, item]) => item) : Object.fromEntries(changed);
}

const importOrRefuse = async (content: string | Buffer): Promise<void> => {
  try {
    await importAll(bytesSource(content));
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
  }
};

describe.each(LINE_RECORDINGS)('%s damaged', (name) => {
  const bytes = readFileSync(recordingPath(name));
  const lines = bytes
    .toString()
    .split('\n')
    .filter((line) => line.trim().startsWith('{'));

  test('imports, or fails with a RecordingError, after any values are replaced', async () => {
    const damages = fc.array(fc.tuple(fc.nat(), fc.array(fc.nat(), { maxLength: 6 }), fc.jsonValue({ maxDepth: 2 })), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(damages, async (all) => {
        const content = [...lines];
        for (const [line, path, other] of all) {
          const at = line % content.length;
          try {
            content[at] = JSON.stringify(damage(JSON.parse(content[at] ?? ''), path, other));
          } catch {
            content[at] = '';
          }
        }
        await importOrRefuse(content.join('\n'));
      }),
      { numRuns: effort(10, 100) },
    );
  });

  test('imports, or fails with a RecordingError, after any bytes are replaced', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 9 })), { minLength: 1, maxLength: 20 }),
        async (all) => {
          const content = Buffer.from(bytes);
          for (const [at, patch] of all)
            content.set(patch.subarray(0, content.length - (at % content.length)), at % content.length);
          await importOrRefuse(content);
        },
      ),
      { numRuns: effort(10, 100) },
    );
    expect(bytes.length).toBeGreaterThan(0);
  });
});

test.each(['codex/coding.jsonl', 'openhands-sdk/events.jsonl'])(
  '%s: treats a role named like an inherited property, such as constructor, as unknown',
  async (name) => {
    const text = readFileSync(recordingPath(name), 'utf8').replaceAll(
      /"role": ?"(?:user|assistant)"/g,
      '"role":"constructor"',
    );
    const { entries } = await importAll(
      bytesSource(text.replaceAll(/"source": ?"(?:user|agent)"/g, '"source":"toString"')),
    );
    const said = entries.flatMap((entry) => (entry.kind === 'message' ? [entry] : []));
    expect(said.length).toBeGreaterThan(0);
    for (const { role, origin } of said) {
      expect(['user', 'assistant', 'system', 'developer']).toContain(role);
      expect(['person', 'model', 'harness']).toContain(origin);
    }
  },
);
