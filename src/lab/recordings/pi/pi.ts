import { recordingId } from '../entries/recording-id.js';
import type { Importer } from '../importer.js';
import { readJsonLines } from '../json/json-lines.js';
import { isRecord, recogniseLines } from '../json/line-format.js';
import { PiReader } from './reader.js';

/** pi: JSON lines, a list (version 1) or a tree of entries (versions 2 and 3), one file for each session. */
export const pi: Importer = {
  format: 'pi',
  recognise: (source) => recogniseLines(source, 'pi'),
  async *read(source, onLoss) {
    const reader = new PiReader(recordingId(source), onLoss);
    for await (const { record, place } of readJsonLines(source.open(), onLoss, { isRecord })) yield* reader.read(record, place);
    reader.finish();
  },
};
