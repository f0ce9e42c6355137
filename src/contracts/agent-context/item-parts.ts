import type { Json } from '../../objects/canonical-json.js';
import { defined } from '../../values/defined.js';
import type { Redactor } from '../projection/redaction-rules.js';
import { SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';
import { withoutStatus } from './status-scan.js';

/** A `context_item` of the draft. */
export type Item = Shaped<'context_item'>;

/** The parts of an item before redaction. */
export interface ItemParts {
  /** All names of the item: its id, then the object's name, then the harness's name. */
  readonly names: readonly string[];
  readonly kind: Item['context_kind'];
  readonly mode: Item['content_mode'];
  readonly trust: Item['trust_level'];
  readonly at: number;
  readonly text?: string | undefined;
  /** The value whose JSON is the text. */
  readonly value?: Json | undefined;
  /** Builds the content, unless the content is just the text. */
  readonly content?: ((text: string) => Json) | undefined;
  readonly contentRef?: Item['content_ref'] | undefined;
  readonly title?: string | undefined;
  readonly tokens?: number | undefined;
  readonly sources: readonly string[];
  readonly freshness?: Item['freshness'] | undefined;
  readonly sensitivity?: string | undefined;
  readonly visibility?: Item['visibility'];
  readonly metadata: Readonly<Record<string, Json | undefined>>;
}

/** The visibility of an item that the model sees. */
export const MODEL: Item['visibility'] = ['model', 'reviewer'];

/** Creates an item without redacted text. */
export function itemOf(id: string, parts: ItemParts, redactor: Redactor): Item {
  const { names, kind, mode, trust, at, text, value, content, contentRef, title, tokens, sources, freshness } = parts;
  const { text: shown, rule, isReplaced } = redactor.shown(names, value ?? text ?? '');
  const isHidden = shown === undefined || (text === undefined && rule !== undefined);
  const body = shown === undefined || text === undefined ? undefined : isReplaced ? shown : (content?.(shown) ?? shown);
  const isWhole = text !== undefined && rule === undefined;
  const redacted =
    rule === undefined
      ? {}
      : {
          redaction_method: rule.redaction_method,
          ...defined({ redaction_reason: rule.reason, redacted_by: rule.redacted_by }),
        };
  const metadata = { ...defined(parts.metadata), ...redacted } as Readonly<Record<string, Json>>;
  return {
    schema_version: SCHEMA_VERSION,
    item_id: id,
    context_kind: kind,
    content_mode: isHidden ? 'opaque' : mode,
    mime_type: typeof body === 'object' ? 'application/json' : 'text/plain',
    source_refs: sources,
    trust_level: trust,
    redaction_state: rule?.redaction_state ?? 'none',
    visibility: parts.visibility ?? MODEL,
    created_at: timeText(at),
    metadata: withoutStatus(redactor.without(metadata)) as Readonly<Record<string, Json>>,
    ...defined({
      title: title === undefined ? undefined : redactor.without(title),
      content: isHidden ? undefined : body,
      content_ref: contentRef,
      token_estimate: isHidden ? undefined : tokens,
      byte_size: isWhole ? Buffer.byteLength(text) : undefined,
      freshness,
      sensitivity: parts.sensitivity,
      policy_refs: rule === undefined || rule.policy_refs.length === 0 ? undefined : rule.policy_refs,
    }),
  };
}
