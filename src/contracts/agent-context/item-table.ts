import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import { defined } from '../../values/defined.js';
import type { Entry, ResultEntry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import type { ProjectedFile } from '../projection/projection-source.js';
import type { Redactor } from '../projection/redaction-rules.js';
import { type Item, type ItemParts, itemOf, MODEL } from './item-parts.js';
import { SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';

type Source = Shaped<'context_source_ref'>;

/** The tool by which a harness hands work to another agent. */
const HANDOFF = 'agent.handoff';

const REVIEWER: Item['visibility'] = ['reviewer'];

/** Returns an id for a record. The id is the same in every bundle that holds the record. */
export const recordName = (kind: string, record: object): string =>
  `${kind}-${hashText(JSON.stringify(record)).slice(0, 24)}`;

/** Returns the mapping of a source to the harness's own id of its message or call. */
function nativeMapping(field: string, value: string | undefined): Source['external_mappings'] {
  return value === undefined ? undefined : [{ system: 'model_api', field, value: value.slice(0, 400) }];
}

/**
 * The items of a session at a basis with their sources: messages, results, files and items added by
 * records. Each item has one id. A reference to a missing item adds an opaque item, so every
 * reference resolves.
 */
export class ItemTable {
  readonly #items = new Map<string, Item>();
  readonly #sources = new Map<string, Source>();
  readonly #names = new Map<string, string>();
  readonly #projection: Projection;
  readonly #redactor: Redactor;
  readonly #newest: string | undefined;

  constructor(projection: Projection, redactor: Redactor) {
    this.#projection = projection;
    this.#redactor = redactor;
    this.#newest = projection.entries.findLast(({ kind }) => kind === 'user')?.id;
    for (const file of projection.files) this.#file(file);
    for (const entry of projection.entries) this.#entry(entry);
  }

  get items(): readonly Item[] {
    return [...this.#items.values()];
  }

  get sources(): readonly Source[] {
    return [...this.#sources.values()];
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Returns the current state of the item with an id. */
  get(id: string): Item | undefined {
    return this.#items.get(id);
  }

  /**
   * Returns the id of the item for the name of an entry, object or record. If the session lacks it
   * at this basis, adds an opaque item.
   */
  ref(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const at = this.#projection.entries.at(-1)?.at ?? 0;
    const metadata = { not_in_session: true };
    this.#add({
      names: [name],
      kind: 'custom',
      mode: 'opaque',
      trust: 'unknown',
      at,
      sources: [],
      visibility: REVIEWER,
      metadata,
    });
    return name;
  }

  refs(names: readonly string[]): readonly string[] {
    return [...new Set(names.map((name) => this.ref(name)))];
  }

  /** Returns the redaction state of the first redacted item among those given. */
  redactionOf(items: readonly string[]): Item['redaction_state'] {
    const states = items.map((item) => this.#items.get(item)?.redaction_state);
    return states.find((state) => state !== undefined && state !== 'none') ?? 'none';
  }

  /** Returns the source id of a file. Undefined if the session lacks the file. */
  fileSource(id: string): string | undefined {
    const source = `file-${id}`;
    return this.#sources.has(source) ? source : undefined;
  }

  /** Adds the note of a record: working material or a constraint to keep. */
  addNote(record: ContextRecord<'note'>): void {
    const { name, note, text, source } = record.body;
    const kind = note === 'constraint' ? 'policy_note' : 'working_memory';
    this.#ofRecord({ record, id: recordName('note', record), kind, text, metadata: { name, note, source } });
  }

  /** Adds a memory item. An evicted item has no content. */
  addMemory(record: ContextRecord<'memory'>): void {
    const { name, item, content, tags, sensitivity } = record.body;
    const text = content === null ? undefined : typeof content === 'string' ? content : JSON.stringify(content);
    const value = text === undefined ? undefined : content;
    this.#ofRecord({
      record,
      id: `memory-${name}`,
      kind: 'durable_memory',
      text,
      value,
      sensitivity,
      metadata: { name, item, tags },
    });
  }

  /** Adds the summary that replaces entries in a view. */
  addSummary(record: ContextRecord<'compaction'>, text: string | undefined): string {
    const id = recordName('summary-item', record);
    const mode = text === undefined ? 'opaque' : 'summary';
    this.#ofRecord({ record, id, kind: 'thread_summary', text, metadata: {}, mode, visibility: MODEL });
    return id;
  }

  #ofRecord({
    record,
    id,
    text,
    mode = text === undefined ? 'opaque' : 'inline',
    visibility = REVIEWER,
    ...rest
  }: Pick<ItemParts, 'kind' | 'text' | 'value' | 'sensitivity' | 'metadata' | 'visibility'> & {
    readonly record: ContextRecord;
    readonly id: string;
    readonly mode?: Item['content_mode'];
  }): void {
    const source = `${id}-record`;
    const { session } = this.#projection;
    this.#source({
      source_id: source,
      uri: `palimpsest:///sessions/${encodeURIComponent(session)}/records/${id}`,
      source_kind: 'record',
    });
    const tokens = text === undefined ? undefined : this.#projection.counter.count(text);
    const { turn, seq, at } = record;
    const metadata = { turn, seq, ...rest.metadata };
    this.#add({
      ...rest,
      names: [id],
      mode,
      trust: 'harness',
      at,
      text,
      tokens,
      sources: [source],
      visibility,
      metadata,
    });
  }

  #entry(entry: Entry): void {
    if (entry.kind === 'approval') return;
    const { id, turn, index, seq, at, tokens, sha256 } = entry;
    const common = { at, tokens, metadata: { turn, index, seq, sha256 } };
    if (entry.kind === 'result') {
      this.#result(entry, common);
      return;
    }
    const isPrompt = entry.kind === 'system' && entry.isPrompt;
    const step = isPrompt ? 'system-prompt' : `step-${seq}-${id}`;
    const { session } = this.#projection;
    const place = `palimpsest:///sessions/${encodeURIComponent(session)}`;
    this.#source({
      source_id: step,
      uri: isPrompt ? `${place}/system-prompt` : `${place}/steps/${seq}`,
      source_kind: 'session',
      ...(isPrompt ? {} : { selector: { type: 'message_part', value: { turn, step: seq } } }),
      digest: `sha256:${sha256}`,
      ...defined({ external_mappings: nativeMapping('message_id', entry.native) }),
    });
    const kinds: Readonly<Record<typeof entry.kind, readonly [Item['context_kind'], Item['trust_level']]>> = {
      system: [isPrompt ? 'system_prompt' : 'developer_instruction', 'harness'],
      user: [id === this.#newest ? 'user_message' : 'session_history', 'user'],
      assistant: ['session_history', 'model'],
      reminder: ['runtime_state', 'harness'],
    };
    const [kind, trust] = kinds[entry.kind];
    const calls = entry.kind === 'assistant' ? entry.calls : [];
    const content =
      calls.length === 0
        ? undefined
        : (text: string): Json => ({
            text,
            tool_calls: calls.map((call) => ({
              id: call.id,
              tool: call.tool,
              arguments: this.#redactor.without(call.args),
            })),
          });
    const all = tokens + calls.reduce((sum, call) => sum + call.tokens, 0);
    const native = entry.native === undefined ? [] : [entry.native];
    const metadata = {
      ...common.metadata,
      role: entry.role,
      tool_calls: calls.length === 0 ? undefined : calls.map((call) => call.id),
    };
    const parts = {
      names: [id, ...native],
      kind,
      trust,
      text: entry.text,
      content,
      sources: [step],
      visibility: MODEL,
    };
    this.#add({ ...common, ...parts, mode: 'inline', tokens: all, metadata });
  }

  #result(entry: ResultEntry, common: Pick<ItemParts, 'at' | 'tokens' | 'metadata'>): void {
    const { id, call, native, tool, text, active, pinned, files, of, sha256 } = entry;
    const source = `call-${id}`;
    const version = this.#projection.versions.get(call);
    this.#source({
      source_id: source,
      uri: `palimpsest:///objects/${encodeURIComponent(call)}`,
      source_kind: 'tool_call',
      digest: `sha256:${entry.whole ?? sha256}`,
      ...defined({ external_mappings: nativeMapping('tool_call_id', native) }),
      metadata: { object_id: call, ...defined({ object_hash: version?.objectHash }) },
    });
    const isShown = active && text !== null;
    this.#add({
      ...common,
      names: [id, call, native],
      kind: tool === HANDOFF ? 'peer_agent_message' : 'tool_result',
      trust: 'tool',
      mode: isShown ? 'inline' : 'tool_result_ref',
      text: isShown ? text : undefined,
      contentRef: isShown ? undefined : { kind: 'toolcall', id: call },
      title: tool,
      sources: [source, ...files.flatMap((file) => this.fileSource(file) ?? [])],
      visibility: MODEL,
      // If the whole text was too large to keep, the source holds its hash.
      metadata: {
        ...common.metadata,
        tool,
        tool_call_id: native,
        call_item: of,
        pinned: pinned ? true : undefined,
        kept: entry.whole === undefined ? undefined : 'head and tail',
      },
    });
  }

  #file({ metadata, source, active, pinned, content }: ProjectedFile): void {
    const { id, displayPath, state, fileHash, contentHash, charCount } = metadata;
    const version = this.#projection.versions.get(id);
    const at = version?.validTime ?? 0;
    const ref = `file-${id}`;
    this.#source({
      source_id: ref,
      uri: `file://${encodeURI(displayPath).replaceAll('#', '%23').replaceAll('?', '%3F')}`,
      source_kind: 'file',
      ...(fileHash === null ? {} : { digest: `sha256:${fileHash}` }),
      modified_at: timeText(at),
      metadata: { object_id: id, filesystem_id: source.filesystemId, ...defined({ object_hash: version?.objectHash }) },
    });
    const isShown = active && typeof content === 'string';
    const freshness = { stub: 'unread', indexed: 'current', 'not-text': 'current', deleted: 'deleted' } as const;
    this.#add({
      names: [id],
      kind: 'file_excerpt',
      mode: isShown ? 'inline' : 'ref',
      trust: 'tool',
      at,
      text: isShown ? content : undefined,
      contentRef: isShown ? undefined : { kind: 'file', id },
      title: displayPath,
      tokens: isShown ? this.#projection.counter.count(content) : undefined,
      sources: [ref],
      freshness: freshness[state],
      visibility: MODEL,
      metadata: { chars: charCount, content_hash: contentHash ?? undefined, pinned: pinned ? true : undefined },
    });
  }

  #source(source: Omit<Source, 'schema_version'>): void {
    this.#sources.set(source.source_id, { schema_version: SCHEMA_VERSION, ...source });
  }

  #add(parts: ItemParts): void {
    const [id = '', ...others] = parts.names;
    if (this.#items.has(id)) return;
    this.#items.set(id, itemOf(id, parts, this.#redactor));
    this.#names.set(id, id);
    for (const name of others) if (!this.#names.has(name)) this.#names.set(name, id);
  }
}
