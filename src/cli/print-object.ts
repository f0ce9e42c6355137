import type { ObjectView, VersionText } from '../history/ask/object-view.js';
import type { ObjectVersion } from '../objects/seal.js';
import { escapedLine, escapedText } from './escape-text.js';
import type { Colours } from './output.js';
import { shownTime } from './print-basis.js';

const HASHES = ['identity_hash', 'file_hash', 'content_hash', 'metadata_hash', 'object_hash'] as const;
/** As wide as the longest name of a field. */
const WIDTH = 17;
const ELSEWHERE: ReadonlySet<string> = new Set(['xt/id', 'type', 'source', 'content', ...HASHES]);

function fieldLines(version: ObjectVersion): readonly string[] {
  const fields = Object.entries(version).filter(([name]) => !ELSEWHERE.has(name));
  return fields.map(([name, value]) => {
    const size = Array.isArray(value) && value.length > 5 ? `${value.length} entries` : JSON.stringify(value);
    return `${name.padEnd(WIDTH)} ${escapedLine(size ?? 'null')}`;
  });
}

const MORE: Readonly<Partial<Record<ObjectVersion['type'], (version: ObjectVersion) => readonly string[]>>> = {
  session: (version) =>
    version.type !== 'session'
      ? []
      : (['session_index', 'active_set', 'pinned_set'] as const).flatMap((set) => [
          '',
          `${set}:`,
          ...version[set].map((id) => `  ${escapedLine(id)}`),
        ]),
  chat: (version) =>
    version.type !== 'chat'
      ? []
      : version.turns.flatMap(({ turn, messages }) => [
          '',
          `turn ${turn}`,
          ...messages.flatMap(({ role, text, toolcall_refs = [] }) => [
            `${escapedLine(role)}: ${escapedText(text)}`,
            ...toolcall_refs.map((id) => `  toolcall ${escapedLine(id)}`),
          ]),
        ]),
};

/** An object at a moment: who it is, both times of the version, its fields and hashes, then its text. */
export function objectLines(
  view: ObjectView,
  display: string | undefined,
  text: VersionText | undefined,
  withContent: boolean,
  colours: Colours,
): readonly string[] {
  const { version, times, number, gone } = view;
  const { source } = version;
  const path = source === null ? [] : [`${'path'.padEnd(WIDTH)} ${escapedLine(display ?? source.path)}`];
  const canonical = source === null || source.path === display ? [] : [`${'canonical'.padEnd(WIDTH)} ${escapedLine(source.path)}`];
  const state = gone ? ' (deleted)' : version.type === 'file' && version.file_hash === null ? ' (not read yet)' : '';
  const cut = text !== undefined && !text.whole ? ['only the head and the tail of this text were kept'] : [];
  const content = withContent && text !== undefined ? ['', ...cut, escapedText(text.text)] : [];
  return [
    `${colours.yellow(`${version.type} ${escapedLine(version['xt/id'])}`)}${state}`,
    ...path,
    ...canonical,
    `${'version'.padEnd(WIDTH)} ${number}`,
    `${'valid'.padEnd(WIDTH)} ${shownTime(times.validTime)}`,
    `${'known'.padEnd(WIDTH)} ${shownTime(times.txTime)}, transaction ${times.txId}`,
    ...fieldLines(version),
    ...HASHES.map((name) => colours.dim(`${name.padEnd(WIDTH)} ${version[name] ?? 'null'}`)),
    ...(withContent ? (MORE[version.type]?.(version) ?? []) : []),
    ...content,
  ];
}
