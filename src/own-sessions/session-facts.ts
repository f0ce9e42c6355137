import * as z from 'zod';
import { cacheLifetimeMs, isHourCache, pauseEndsCache } from '../assembly/epoch/prices.js';
import type { RecordMask } from '../client/record-mask.js';
import { KeptPlaces, REWINDS } from '../lab/recordings/kept-places.js';
import type { EntryOf, RecordedEntry } from '../lab/recordings/neutral-session.js';
import { INPUT_WITHOUT_CACHE } from '../lab/replay/model-usage.js';
import { defined } from '../values/defined.js';
import { AGENTS } from './agent-homes.js';
import {
  CallCounter,
  type CountedSession,
  type CountsThen,
  countersOf,
  countsOf,
  isSubAgent,
  keptCallsOf,
  ownCallsOf,
} from './counted-session.js';

const count = z.int().nonnegative();
const tokens = z.number().nonnegative();

/**
 * A model's answer whose tokens the provider counted. It is a tuple to save space, because an index
 * has thousands. Its members:
 *
 * - time in milliseconds since 1970
 * - number of the model in `models`
 * - prompt tokens neither read from the cache nor written to it
 * - tokens read from the cache
 * - tokens written to the cache
 * - tokens of the answer
 * - US dollars, if the agent recorded them
 * - tokens written to the cache for an hour, if there are any
 */
const countedAnswerSchema = z.tuple([
  z.number().nullable(),
  count,
  tokens,
  tokens,
  tokens,
  tokens,
  tokens.nullable(),
  tokens.optional(),
]);
export type CountedAnswer = z.output<typeof countedAnswerSchema>;

/** Reasons why a provider had to process cached tokens again. */
export const CACHE_LOSSES = ['pause', 'compaction', 'rewind', 'model change', 'other'] as const;
export type CacheLoss = (typeof CACHE_LOSSES)[number];

/**
 * A model call that read less from the cache than the previous request could have left there. The
 * members are its time, its model's number, the reason's number in `CACHE_LOSSES`, and the lost
 * tokens. The last member, if any, is the number of lost tokens that it wrote again for an hour.
 */
const cacheLossSchema = z.tuple([z.number().nullable(), count, count, tokens, tokens.optional()]);

/** The facts of a recording that lists show. */
export const sessionFactsSchema = z.object({
  agent: z.enum(AGENTS),
  /** The session's id as the agent knows it. */
  id: z.string(),
  /** The session's name in the recording, or else the first prompt. */
  title: z.string(),
  folder: z.string().optional(),
  model: z.string().optional(),
  /** Milliseconds since 1970. */
  startedAt: z.number().optional(),
  endedAt: z.number().optional(),
  turns: count,
  /**
   * Number of model calls that the session made itself. Copied calls belong to its parent. Calls
   * that a rewind took back are left out.
   */
  calls: count,
  /** Number of model calls without token counts. Copied calls are left out. */
  uncounted: count,
  toolCalls: count,
  /** The session that started this one as a sub-agent. */
  subagentOf: z.string().optional(),
  /** Names of the models. An unknown model has an empty name. */
  models: z.array(z.string()),
  answers: z.array(countedAnswerSchema),
  /** The sub-agents in the recording. `answers` has the positions of their answers. */
  subAgents: z.object({ sessions: count, answers: z.array(count) }).optional(),
  cacheLosses: z.array(cacheLossSchema),
  /** Number of parts that could not be read, by reason. */
  losses: z.record(z.string(), count),
});
export type SessionFacts = z.output<typeof sessionFactsSchema>;

const TITLE_CHARS = 200;

/** Returns a text as one line of limited length and masks its secrets. */
export function asTitle(text: string, mask: RecordMask): string {
  // Masked before it is shortened, because the mask cannot recognise half a key.
  const line = mask
    .text(text.slice(0, 10 * TITLE_CHARS))
    .replace(/\s+/g, ' ')
    .trim();
  return line.slice(0, TITLE_CHARS).toWellFormed();
}

type Usage = NonNullable<EntryOf<'message'>['usage']>;

/** A session of the recording that is being read: the conversation or a sub-agent. */
interface OpenSession extends CountedSession {
  model: string | undefined;
  at: number | undefined;
  /** Time of the newest input for the model. */
  inputAt: number | undefined;
  readonly places: KeptPlaces<CountsThen>;
  /** Events since the last counted answer that explain a lost cache. */
  since: Set<CacheLoss>;
  last: CachedRequest | undefined;
}

/** A request, as far as the next one can read it from the cache. */
interface CachedRequest {
  readonly prompt: number;
  readonly at: number | undefined;
  readonly model: string;
  /** Whether its cache lives for an hour. */
  readonly isHour: boolean;
}

/**
 * Returns a figure, or 0 if it is negative or too large. A damaged recording may have such figures,
 * which would spoil every sum.
 */
const countable = (figure: number | undefined): number =>
  figure !== undefined && figure >= 0 && figure <= 1e12 ? figure : 0;

/** Returns the optional last member of a tuple: a number, or nothing for 0. */
const optional = (figure: number): [] | [number] => (figure === 0 ? [] : [figure]);

const isCounted = ({ input, output, cache_read, cache_write }: Usage): boolean =>
  [input, output, cache_read, cache_write].some((figure) => countable(figure) > 0);

/** Smaller losses come from the provider's rounding, and from texts that moved to the end. */
const LEAST_LOST_TOKENS = 2_000;
const LEAST_LOST_SHARE = 0.05;

/** Collects the facts of one recording. It takes the entries in order. */
export class FactsCollector {
  readonly #mask: RecordMask;
  readonly #sessions = new Map<string, OpenSession>();
  readonly #models: string[] = [];
  readonly #counted: CountedAnswer[] = [];
  /** The positions of sub-agents' answers in `#counted`. */
  readonly #bySubAgents: number[] = [];
  readonly #lost: SessionFacts['cacheLosses'] = [];
  #main: EntryOf<'session'> | undefined;
  #name: string | undefined;
  #prompt: string | undefined;
  /** The first prompt of a copied history. */
  #copiedPrompt: string | undefined;
  #model: string | undefined;
  #from: number | undefined;
  #to: number | undefined;

  /** `mask` masks the secrets in titles, because the index stores titles. */
  constructor(mask: RecordMask) {
    this.#mask = mask;
  }

  take(entry: RecordedEntry): void {
    if (entry.kind === 'session') {
      this.#main ??= entry;
      this.#model ??= entry.model;
      this.#sessions.set(entry.native_id, {
        entry,
        model: entry.model,
        calls: { all: new CallCounter(), counted: new CallCounter() },
        hasTokens: false,
        at: entry.started_at,
        inputAt: undefined,
        turns: 0,
        places: new KeptPlaces(),
        since: new Set(),
        last: undefined,
      });
      this.#moment(entry.started_at);
      return;
    }
    const session = this.#sessions.get(entry.session);
    if (session === undefined) return;
    if (entry.copied !== true) this.#moment(entry.at);
    session.at = entry.at ?? session.at;
    const before = countsOf(session);
    this.#count(session, entry);
    if (entry.kind !== 'event' || !REWINDS.has(entry.name))
      session.places.note(entry, { before, after: countsOf(session) });
  }

  #count(session: OpenSession, entry: Exclude<RecordedEntry, { kind: 'session' }>): void {
    if (entry.kind === 'call') {
      const own = entry.copied === true ? 0 : 1;
      for (const counter of countersOf(session)) {
        counter.tools += own;
        counter.add(counter.rule.toolCall(), entry.copied);
      }
    } else if (entry.kind === 'result') {
      for (const { rule } of countersOf(session)) rule.result();
      session.inputAt = session.at;
    } else if (entry.kind === 'compaction') {
      session.since.add('compaction');
      this.#input(session);
    } else if (entry.kind === 'message') this.#message(session, entry);
    else this.#event(session, entry);
  }

  /** Returns the facts. Undefined if the recording has no session. */
  finish(losses: SessionFacts['losses']): Omit<SessionFacts, 'agent'> | undefined {
    if (this.#main === undefined) return undefined;
    const { native_id: id, cwd, parent } = this.#main;
    const sessions = [...this.#sessions.values()];
    const own = sessions.reduce((sum, one) => sum + ownCallsOf(one), 0);
    const main = this.#sessions.get(id);
    const started = sessions.filter(({ entry }) => isSubAgent(entry, this.#main)).length;
    return {
      id,
      title: asTitle(this.#name ?? this.#prompt ?? this.#copiedPrompt ?? '', this.#mask),
      turns: main?.turns ?? 0,
      calls: keptCallsOf(main),
      uncounted: Math.max(0, own - this.#counted.length),
      toolCalls: sessions.reduce((sum, one) => sum + one.calls.all.kept.tools, 0),
      models: this.#models,
      answers: this.#counted,
      cacheLosses: this.#lost,
      losses,
      ...defined({
        folder: cwd,
        model: this.#model,
        startedAt: this.#from,
        endedAt: this.#to,
        subAgents: started === 0 ? undefined : { sessions: started, answers: this.#bySubAgents },
        subagentOf: parent?.relation === 'subagent' ? parent.native_id : undefined,
      }),
    };
  }

  #moment(at: number | undefined): void {
    if (at === undefined) return;
    this.#from = Math.min(this.#from ?? at, at);
    this.#to = Math.max(this.#to ?? at, at);
  }

  #input(session: OpenSession): void {
    for (const { rule } of countersOf(session)) rule.input();
    session.inputAt = session.at;
  }

  #message(session: OpenSession, entry: EntryOf<'message'>): void {
    const { role, origin, text, usage, copied } = entry;
    if (role === 'assistant') {
      const isEmpty = usage !== undefined && !isCounted(usage);
      session.hasTokens ||= usage !== undefined && !isEmpty;
      for (const counter of countersOf(session)) {
        counter.hasAnswers = true;
        if (isEmpty && counter === session.calls.counted) counter.rule.input();
        else counter.add(counter.rule.message(usage !== undefined), copied);
      }
      if (origin === 'model' && usage !== undefined && copied !== true) this.#usage(session, usage);
      return;
    }
    this.#input(session);
    if (role !== 'user' || origin !== 'person' || session.entry !== this.#main) return;
    const said = text.trim() === '' ? undefined : text;
    if (copied === true) this.#copiedPrompt ??= said;
    else {
      session.turns += 1;
      this.#prompt ??= said;
    }
  }

  #event(session: OpenSession, entry: EntryOf<'event'>): void {
    const { name, text, usage, copied } = entry;
    if (name === 'model-change') {
      session.model = text ?? session.model;
      this.#model ??= text;
    }
    if (REWINDS.has(name)) {
      session.since.add('rewind');
      const then = session.places.target(entry);
      session.places.takeBack(entry);
      for (const [i, counter] of countersOf(session).entries()) {
        counter.rule.input();
        if (then !== undefined) counter.returnTo(then.calls[i] ?? counter.kept);
      }
      session.turns = then?.turns ?? session.turns;
    }
    if (name === 'titled' && session.entry === this.#main) this.#name = text ?? this.#name;
    if (usage !== undefined && copied !== true) this.#usage(session, usage);
  }

  /**
   * Adds an answer with its token counts. Answers that a fork copied are counted in the original
   * session.
   */
  #usage(session: OpenSession, usage: Usage): void {
    const { format } = session.entry;
    const { model, at } = session;
    const [input = 0, output = 0, read = 0, write = 0, marked = 0] = [
      usage.input,
      usage.output,
      usage.cache_read,
      usage.cache_write,
      usage.cache_write_hour,
    ].map(countable);
    const hour = Math.min(marked, write);
    const cost = usage.cost === undefined ? undefined : countable(usage.cost);
    const fresh = INPUT_WITHOUT_CACHE.has(format) ? input : Math.max(0, input - read - write);
    if (fresh + read + write + output === 0) return;
    const name = model ?? '';
    if (!this.#models.includes(name)) this.#models.push(name);
    this.#cache(session, { fresh, read, write, hour, model: name });
    const counts = [fresh, read, write, output, cost ?? null] as const;
    if (isSubAgent(session.entry, this.#main)) this.#bySubAgents.push(this.#counted.length);
    this.#counted.push([at ?? null, this.#models.indexOf(name), ...counts, ...optional(hour)]);
  }

  /** Records a lost cache if a request read much less from it than the previous request had. */
  #cache(
    session: OpenSession,
    {
      fresh,
      read,
      write,
      hour,
      model,
    }: Readonly<Record<'fresh' | 'read' | 'write' | 'hour', number>> & { readonly model: string },
  ): void {
    const { last, at, inputAt, since } = session;
    const prompt = fresh + read + write;
    const isHour = isHourCache({ cacheWrite: write, cacheWriteHour: hour }, last?.isHour);
    session.last = { prompt, at, model, isHour };
    session.since = new Set();
    if (last === undefined) return;
    const lost = Math.min(last.prompt, prompt) - read;
    if (lost < LEAST_LOST_TOKENS || lost < LEAST_LOST_SHARE * last.prompt) return;
    if (model !== last.model) since.add('model change');
    const asked = inputAt ?? at;
    const pausedMs = asked === undefined || last.at === undefined ? 0 : asked - last.at;
    if (pauseEndsCache(pausedMs, { lifetimeMs: cacheLifetimeMs(model, last.isHour), lost, read })) since.add('pause');
    const reason = CACHE_LOSSES.find((one) => since.has(one)) ?? 'other';
    const again = hour === 0 ? 0 : Math.round((lost * hour) / (fresh + write));
    this.#lost.push([at ?? null, this.#models.indexOf(model), CACHE_LOSSES.indexOf(reason), lost, ...optional(again)]);
  }
}
