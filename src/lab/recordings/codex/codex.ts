import { recordingId } from '../entries/recording-id.js';
import type { Importer } from '../importer.js';
import { readJsonLines } from '../json/json-lines.js';
import { isRecord, recogniseLines } from '../json/line-format.js';
import { CodexReader } from './reader.js';

/** Codex: JSON lines under `~/.codex/sessions`, one file for each session and each sub-agent. */
export const codex: Importer = {
  format: 'codex',
  recognise: (source) => recogniseLines(source, 'codex'),
  async *read(source, onLoss) {
    const reader = new CodexReader(recordingId(source), onLoss);
    for await (const { record, place } of readJsonLines(source.open(), onLoss, { isRecord })) {
      reader.read(record, place);
      yield* reader.ready();
    }
    yield* reader.finish();
  },
};
