import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import { type FactSource, metadataOf, oneOf } from './fact-source.js';
import { recordName } from './item-table.js';
import { compactionMethods, compactionTriggers } from './shape-words.js';
import { SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';

const REPLACEMENT =
  'in the view that a model is given alone; every replaced entry stays in the store, and in this bundle as an item';
const REFRESH =
  'entries never change, so it never becomes stale by itself; it is made anew when more entries are replaced';

function lossesOf(body: ContextRecord<'compaction'>['body'], isHidden: boolean): readonly string[] {
  const own = isHidden ? [] : (body.loss ?? []);
  const lost = body.summary?.lost.length ?? 0;
  return [
    ...own,
    ...(lost === 0 ? [] : [`${lost} identifiers of the replaced entries are not in the summary`]),
    ...(body.lines.length === 0 ? [] : [`${body.lines.length} results are shown as a line without their text`]),
    ...(body.cut.length === 0 ? [] : [`of ${body.cut.length} entries the middle is not shown`]),
    body.summary === undefined
      ? `${body.gone.length} entries are not shown and no summary stands for them`
      : `of ${body.gone.length} entries only what the summary says is shown`,
  ];
}

/** Converts a recorded compaction and its summary, if it has one. */
export function compactionOf(record: ContextRecord<'compaction'>, { table, redactor }: FactSource) {
  const { body, at } = record;
  const id = recordName('compaction', record);
  const covered = table.refs([...body.gone, ...body.lines, ...body.cut]);
  // A summary of redacted text can repeat any part of that text.
  const isHidden = table.redactionOf(covered) !== 'none';
  const method = oneOf(compactionMethods.options, body.method);
  const trigger = oneOf(compactionTriggers.options, body.trigger);
  const loss_notes = redactor.without(lossesOf(body, isHidden));
  const { summary: made } = body;
  const validation =
    made === undefined
      ? undefined
      : {
          by: made.by,
          identifiers: made.identifiers.length,
          identifiers_not_kept: isHidden ? [] : redactor.without(made.lost),
        };
  let summary: Shaped<'context_summary'> | undefined;
  if (made !== undefined && validation !== undefined) {
    const text = isHidden ? undefined : redactor.without(made.text);
    const item = table.addSummary(record, text);
    summary = {
      schema_version: SCHEMA_VERSION,
      summary_id: id.replace('compaction', 'summary'),
      summary_kind: 'thread_summary',
      item_ref: item,
      ...defined({ content: text }),
      source_item_refs: table.refs(body.gone),
      coverage: { replaced: table.refs(body.gone) },
      loss_notes,
      open_questions: [],
      freshness: 'current',
      validation,
      refresh_policy: REFRESH,
      ...(isHidden
        ? { metadata: { redaction_state: 'removed', redaction_reason: 'it covers an item that was redacted' } }
        : {}),
    };
  }
  const compaction: Shaped<'context_compaction'> = {
    schema_version: SCHEMA_VERSION,
    compaction_id: id,
    scope: 'session',
    source_item_refs: covered,
    method: method ?? 'custom',
    trigger: trigger ?? 'custom',
    coverage: {
      replaced: table.refs(body.gone),
      shortened: table.refs([...body.lines, ...body.cut]),
      preserved: 'every other item of the session, whole and in its order',
      before_tokens: body.before,
      after_tokens: body.after,
    },
    loss_notes,
    replacement_policy: REPLACEMENT,
    created_at: timeText(at),
    ...defined({ summary_ref: summary?.summary_id, validation }),
    metadata: {
      ...metadataOf(record, redactor, {
        method: method === undefined ? body.method : undefined,
        trigger: trigger === undefined ? body.trigger : undefined,
        limit: body.limit,
        refresh_policy: REFRESH,
      }),
      counter: body.counter,
    },
  };
  return { compaction, summary };
}
