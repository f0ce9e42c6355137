import { isUtf8 } from 'node:buffer';
import { codeOf } from '../../values/thrown.js';
import { atif } from './atif/atif.js';
import { claudeCode } from './claude-code/claude-code.js';
import { cline } from './cline/cline.js';
import { codex } from './codex/codex.js';
import { dataclaw } from './dataclaw/dataclaw.js';
import { EntryChecks } from './entry-checks.js';
import { geminiCli } from './gemini-cli/gemini-cli.js';
import { excerpt, type Importer, type OnItem, type OnLoss, type RecordingSource } from './importer.js';
import type { RecordedEntry } from './neutral-session.js';
import { RecordingError } from './open-recording.js';
import { openAiChat } from './openai-chat/openai-chat.js';
import { opencode } from './opencode/opencode.js';
import { openHandsLegacy } from './openhands/legacy.js';
import { openHandsSdk } from './openhands/sdk.js';
import { pi } from './pi/pi.js';
import { miniSweAgent } from './swe-agent/mini-swe-agent.js';
import { sweAgent } from './swe-agent/swe-agent.js';

const IMPORTERS: readonly Importer[] = [
  claudeCode,
  codex,
  pi,
  sweAgent,
  miniSweAgent,
  openHandsLegacy,
  openHandsSdk,
  geminiCli,
  cline,
  opencode,
  openAiChat,
  atif,
  dataclaw,
];

/** Callbacks and abort signal of an import. */
export interface ImportOptions {
  readonly onLoss: OnLoss;
  readonly onItem?: OnItem;
  /** Called with the number of bytes read so far. */
  readonly onProgress?: (bytesDone: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Maximum bytes of an incomplete character at the end of the head. */
const CUT_CHARACTER_BYTES = 3;

function isText(head: Buffer): boolean {
  if (head.includes(0)) return false;
  return [0, 1, 2, CUT_CHARACTER_BYTES].some((cut) => isUtf8(head.subarray(0, Math.max(0, head.length - cut))));
}

/**
 * Returns the importer that is most certain to recognise a recording.
 *
 * @throws {RecordingError} `empty`, `binary` (not UTF-8 text) or `unrecognised`
 */
export function recogniseRecording(source: RecordingSource): Importer {
  const { name, head } = source;
  if (head.toString('utf8').replace('\uFEFF', '').trim() === '' && source.size <= head.length) {
    throw new RecordingError('empty', `The recording ${name} is empty.`, { recording: name });
  }
  let best: { readonly importer: Importer; readonly certainty: number } | undefined;
  for (const importer of IMPORTERS) {
    if (source.members !== undefined && importer.readsFolders !== true) continue;
    const certainty = importer.recognise(source);
    if (certainty > (best?.certainty ?? 0)) best = { importer, certainty };
  }
  if (best !== undefined) return best.importer;
  if (!isText(head)) {
    throw new RecordingError(
      'binary',
      `The recording ${name} is not UTF-8 text: give it uncompressed, as the agent wrote it.`,
      {
        recording: name,
      },
    );
  }
  const formats = IMPORTERS.map(({ format }) => format).join(', ');
  const start = excerpt(head.toString('utf8').trim());
  throw new RecordingError(
    'unrecognised',
    `The recording ${name} is of no known format (${formats}); it begins: ${start}`,
    {
      recording: name,
    },
  );
}

/**
 * Wraps a recording to report progress. A failed read ends the stream and is reported as a loss.
 */
function monitored(source: RecordingSource, { onLoss, onProgress, signal }: ImportOptions): RecordingSource {
  let done = 0;
  return {
    ...source,
    async *open(member) {
      let own = 0;
      try {
        for await (const chunk of source.open(member)) {
          signal?.throwIfAborted();
          own += chunk.length;
          // A file may be read twice at the same time, so the furthest position counts. Each file
          // of a folder is read once.
          done = member === undefined ? Math.max(done, own) : done + chunk.length;
          onProgress?.(Math.min(done, source.size), source.size);
          yield chunk;
        }
      } catch (cause) {
        const code = codeOf(cause);
        if (signal?.aborted === true || code === undefined) throw cause;
        const place = member === undefined ? `byte ${own}` : `${member}, byte ${own}`;
        onLoss({ reason: 'truncated-file', place, detail: `it cannot be read further (${code})` });
      }
    },
  };
}

/**
 * Streams the entries of a recording of any format. Guarantees for every format:
 * - every entry matches the schema, and its texts are well formed
 * - a session entry is unique and precedes the session's other entries
 * - call ids are unique within a session; a repeated id gets the suffix `~2`, as does its result
 * - every result follows its call, and each call has at most one. Other results become the events
 *   `orphan-result` and `further-result`
 *
 * Calls `onLoss` for each entry that it omits or changes to keep these guarantees, for calls
 * without a result, and for decreasing times.
 *
 * @throws {RecordingError} `empty`, `binary`, `unrecognised`; only before the first entry
 * @throws the reason of an aborted `signal`
 */
export async function* importRecording(source: RecordingSource, options: ImportOptions): AsyncIterable<RecordedEntry> {
  const importer = recogniseRecording(source);
  const { onLoss, onItem = () => undefined, signal } = options;
  signal?.throwIfAborted();
  const checks = new EntryChecks(onLoss);
  for await (const entry of importer.read(monitored(source, options), onLoss, onItem)) {
    const checked = checks.check(entry);
    if (checked !== undefined) yield checked;
  }
  checks.finish();
}
