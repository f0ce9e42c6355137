import { from } from './place.js';
import { oneLine } from './shown-text.js';
import { makerOf } from './strip-layout.js';
import { TextView } from './text-view.js';
import type { Changes, Strip } from './wire.js';
import { counted, pathEnd, plural, speaker } from './words.js';

/** Maximum number of listed files before the reader asks for all. */
const FEW_FILES = 8;

type CompactionOf = NonNullable<Changes['compaction']>;

/** Shows the files of the compaction that later calls read or changed again. */
function NeededLater({ files, needed, strip }: Pick<CompactionOf, 'files' | 'needed'> & { readonly strip: Strip }) {
  if (files === 0) return null;
  if (needed.length === 0)
    return <p>No later call read or changed one of the {plural(files, 'file')} that the dropped calls had.</p>;
  return (
    <details open={needed.length <= FEW_FILES}>
      <summary>
        <strong>
          Needed later: {counted(needed.length)} of {plural(files, 'file')} that the dropped calls had
        </strong>
      </summary>
      <ul class="plain" aria-label="Needed later">
        {needed.map(({ object, name, call, step }) => (
          <li key={object}>
            <a href={from('object', { id: object })}>{oneLine(pathEnd(name, 60))}</a> first at call{' '}
            {counted(makerOf(strip, step))}, by <a href={from('conversation', { step })}>{oneLine(call, 100)}</a>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface CompactionProps {
  readonly compaction: CompactionOf;
  readonly strip: Strip;
}

/** Shows the summary of a compaction, what it dropped, and the files that were needed later. */
export function CompactionCard({ compaction, strip }: CompactionProps) {
  const { summary, dropped, step } = compaction;
  return (
    <section class="card" aria-label="Compaction">
      <h2>
        The harness compacted its history <small>{plural(dropped.length, 'entry', 'entries')} dropped</small>
      </h2>
      <NeededLater {...compaction} strip={strip} />
      {summary === null ? (
        <p class="soft">The summary is not recorded.</p>
      ) : (
        <TextView text={summary} label="The summary that replaced them" />
      )}
      {dropped.length > 0 && (
        <details open={dropped.length < 40}>
          <summary>What it dropped</summary>
          <ul class="plain">
            {dropped.map((one) => (
              <li key={one.step}>
                <a href={from('conversation', { step: one.step })}>
                  {oneLine(one.object === null ? speaker(one.name) : one.name, 160)}
                </a>{' '}
                <span class="soft">{plural(one.chars, 'character')}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      <p class="soft">
        <a href={from('conversation', { step })}>In the conversation</a>
      </p>
    </section>
  );
}
