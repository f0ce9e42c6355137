import { tmpdir } from 'node:os';
import type { LayoutName } from '../../assembly/assembly-record.js';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import { ContextClient } from '../../client/session/context-client.js';
import { guideOf, VERB_INPUT, VERBS } from '../../extensions/guide.js';
import type { LoopContext } from '../../extensions/loop/loop-context.js';
import { LoopSession } from '../../extensions/loop/loop-session.js';
import { composed, HandedLists } from '../../extensions/sidecar/composed-list.js';
import { NO_FILESYSTEM } from '../../objects/ids.js';
import { RETENTION } from '../../session/retention.js';
import { DEFAULT_POLICY, type StepPolicy } from '../../session/step-policy.js';
import { defined } from '../../values/defined.js';
import { NO_NODE } from '../../xtdb/no-node.js';
import { ReplayClock } from '../replay/replay-clock.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { DATABASE_WAIT_MS } from '../replay/replay-engine.js';
import { replayIdentity } from '../replay/replay-identity.js';
import type { ModelCall, Timeline } from '../timeline/timeline.js';
import { type ContextPolicy, type PolicyRequest, type RequestPart, wholePart } from './policy.js';
import { type ReportedList, ReportedLists } from './reported-list.js';

/** Settings of retention by use. Results of edits stay `edits` times as long as other results. */
interface LoopUses {
  readonly shown: number;
  readonly used: number;
  readonly inputs?: boolean | undefined;
  readonly edits?: number | undefined;
  readonly mostShare?: number | undefined;
}

/** Settings of Palimpsest's own policy. */
export interface LoopSettings {
  readonly layout: LayoutName;
  /**
   * When the context is rebuilt: for every call, or for the first call of a turn. Later calls of
   * the turn append to the rebuilt context.
   */
  readonly per: 'call' | 'turn';
  readonly shortIds: boolean;
  /**
   * The rule for objects that stay active. The default is `use` with layout `epoch`, otherwise
   * `window`.
   */
  readonly retention?: StepPolicy['retention'] | undefined;
  /** Settings of retention by use; the defaults if omitted. */
  readonly uses?: LoopUses | undefined;
  /** The model's window in tokens, from which an epoch's budget follows; the default if omitted. */
  readonly window?: number | undefined;
}

/** Opens the database for sessions of our own policies. Only one is open at a time. */
export type OpenDatabase = () => Promise<ReplayDatabase>;

/** Characters that a provider's tool list adds around a verb's description and parameters. */
const AROUND_VERB = 60;
/** Characters of the four verbs in a provider's tool list. */
const VERB_CHARS = Object.entries(VERBS).reduce(
  (sum, [name, description]) =>
    sum + name.length + description.length + JSON.stringify(VERB_INPUT).length + AROUND_VERB,
  0,
);
/** Maximum number of steps and contexts that wait for the database. */
const MOST_WAITING = 48;

/** A message as parts of a request. */
type Parts = readonly RequestPart[];

const ownParts = ({ parts }: RenderedMessage): Parts => parts.map(({ text }) => ({ text }));

function usesOf({ edits, inputs, mostShare, ...lifetimes }: LoopUses): NonNullable<StepPolicy['uses']> {
  const kinds = edits === undefined ? undefined : { ...RETENTION.kinds, edit: edits };
  return { ...lifetimes, ...defined({ inputs, mostShare, kinds }) };
}

/** Returns true if an epoch began because the request would otherwise not have fitted. */
const isPressed = (context: LoopContext | undefined): boolean =>
  context?.epoch?.begins === true && context.epoch.reason === 'pressure';

/** Returns the harness's messages with our context in them. Uses the extensions' own code. */
function listOf({ groups }: ReportedList, context: LoopContext | undefined): readonly Parts[] {
  const messages = groups.map((items) => items.map(wholePart));
  if (context === undefined) return messages;
  return composed<Parts>(
    {
      places: messages.map((_message, i) => i),
      messages,
      said: ownParts,
      withReferences: (_message, lines) => [...lines.values()].map((text) => ({ text })),
    },
    context,
  );
}

/**
 * Returns whether a session has a rewind, which continues in a fork that only a database can make.
 * Other sessions run in a client without storage, at a third of the cost.
 */
const needsDatabase = ({ calls }: Timeline): boolean => calls.some(({ items }) => items !== calls[0]?.items);

/** Runs a recorded session in the real loop. Before each call it does what an extension does. */
class LoopRun {
  readonly #settings: LoopSettings;
  readonly #client: ContextClient;
  readonly #clock: ReplayClock;
  readonly #loop: LoopSession;
  readonly #lists: ReportedLists;
  readonly #handed = new HandedLists();
  /** The parts of the previous request, and the number of messages in its list. */
  #before: { readonly parts: Parts; readonly messages: number } | undefined;
  #opened = false;

  private constructor(
    timeline: Timeline,
    settings: LoopSettings,
    made: { readonly client: ContextClient; readonly clock: ReplayClock; readonly name: string },
  ) {
    this.#settings = settings;
    this.#client = made.client;
    this.#clock = made.clock;
    const { layout, shortIds } = settings;
    const id = replayIdentity(timeline.key, made.name).session;
    this.#loop = new LoopSession(made.client, { id, delivered: 'replay', layout, shortIds, guided: true });
    this.#lists = new ReportedLists(timeline, made.name);
  }

  static async open(
    timeline: Timeline,
    settings: LoopSettings,
    { name, open }: { readonly name: string; readonly open: OpenDatabase },
  ): Promise<LoopRun> {
    const clock = new ReplayClock(Date.now);
    const address = needsDatabase(timeline) ? (await open()).address : NO_NODE;
    const { layout, retention = layout === 'epoch' ? 'use' : 'window', uses } = settings;
    const client = await ContextClient.create({
      address,
      roots: [tmpdir()],
      cwd: '/',
      filesystemId: NO_FILESYSTEM,
      agentFilesystemId: replayIdentity(timeline.key, name).filesystemId,
      policy: { ...DEFAULT_POLICY, retention, ...(uses === undefined ? {} : { uses: usesOf(uses) }) },
      track: false,
      soleWriter: true,
      shareSessions: true,
      what: 'the laboratory',
      clock: () => clock.now,
    });
    return new LoopRun(timeline, settings, { client, clock, name });
  }

  async request(call: ModelCall): Promise<PolicyRequest> {
    this.#clock.advance(call.at);
    const list = this.#lists.before(call);
    const system = list.system.map(({ text }) => text).join('\n\n');
    const history = {
      messages: [...list.messages],
      system: system === '' ? null : system,
      ...defined({ model: call.model, window: this.#settings.window }),
    };
    // Opens the session with its first message only. With more messages, the client could find
    // another session that begins with the same ones.
    if (!this.#opened) await this.#loop.follow({ ...history, messages: history.messages.slice(0, 1) });
    this.#opened = true;
    const before = this.#before;
    const appends = this.#settings.per === 'turn' && !call.opensTurn && before !== undefined;
    if (appends) await this.#loop.follow(history);
    const context = appends ? undefined : await this.#loop.context(history);
    const composedList = appends ? [] : listOf(list, context);
    const parts: Parts = appends
      ? [...before.parts, ...listOf(list, undefined).slice(before.messages).flat()]
      : [...list.system.map(wholePart), ...composedList.flat()];
    this.#before = { parts, messages: list.messages.length };
    const stored = context === undefined ? 0 : await this.#hand(composedList);
    if (this.#client.status.waiting > MOST_WAITING) await this.#client.backpressure(MOST_WAITING, DATABASE_WAIT_MS);
    return { parts, stored, ...(isPressed(context) ? { pressed: true } : {}) };
  }

  /**
   * Stores the record of the sent request, as an extension does. Returns the size of the record in
   * bytes.
   */
  async #hand(list: readonly Parts[]): Promise<number> {
    const record = await this.#loop.handed(this.#handed.of(list.map((parts) => parts.map(({ text }) => text))));
    if (record === undefined) return 0;
    // The basis differs between runs, so it is not counted.
    const { basis: _basis, ahead: _ahead, ...kept } = record;
    return Buffer.byteLength(JSON.stringify(kept));
  }

  async close(): Promise<void> {
    await this.#loop.close();
    await this.#client.close();
  }
}

/** Returns a policy's name with the settings that are not the default. */
function nameOf({ layout, per, shortIds, retention, uses, window }: LoopSettings): string {
  const settings = [
    ...(per === 'turn' ? ['once a turn'] : []),
    ...(shortIds ? ['short ids'] : []),
    ...(retention === undefined ? [] : [retention]),
    ...Object.entries(uses ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`),
    ...(window === undefined ? [] : [`window ${window / 1_000}k`]),
  ];
  return [`Palimpsest ${layout}`, ...settings].join(', ');
}

/**
 * Palimpsest's own policy. The recorded messages pass, call by call, through the real session,
 * client and assembly.
 */
export function loopPolicy(settings: LoopSettings, open: OpenDatabase): ContextPolicy {
  const name = nameOf(settings);
  const { layout, per } = settings;
  return {
    name,
    family: per === 'turn' ? `Palimpsest ${layout}, once a turn` : `Palimpsest ${layout}`,
    kind: 'own',
    source: 'this program',
    fidelity: 'exact',
    // In an epoch the guide is part of the requests.
    guide: (guideOf(layout)?.length ?? 0) + VERB_CHARS,
    about:
      `Layout \`${layout}\` as a harness's extension hands it out, ` +
      `${per === 'turn' ? 'made for the first call of a turn, then only appended to' : 'made for every call'}.`,
    reach: 'activate',
    async *requests(timeline: Timeline): AsyncIterable<PolicyRequest> {
      const run = await LoopRun.open(timeline, settings, { name, open });
      try {
        for (const call of timeline.calls) yield await run.request(call);
      } finally {
        await run.close();
      }
    },
  };
}
