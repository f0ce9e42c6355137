import { recordingId } from '../entries/recording-id.js';
import type { Importer } from '../importer.js';
import { readJsonLines } from '../json/json-lines.js';
import { isRecord, recogniseLines } from '../json/line-format.js';
import { ClaudeCodeReader } from './reader.js';

/** Claude Code: JSON lines under `~/.claude/projects`, one file for each session; files of sub-agents alone are sessions too. */
export const claudeCode: Importer = {
  format: 'claude-code',
  recognise: (source) => recogniseLines(source, 'claude-code'),
  async *read(source, onLoss, onItem) {
    const reader = new ClaudeCodeReader(recordingId(source), onLoss, onItem);
    for await (const { record, place } of readJsonLines(source.open(), onLoss, { isRecord })) {
      reader.read(record, place);
      yield* reader.ready();
    }
    yield* reader.finish();
  },
};
