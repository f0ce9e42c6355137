import pLimit from 'p-limit';
import { callNumbers, modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { askOnce } from '../../values/promises.js';
import type { SessionCall } from '../ask/session-calls.js';
import type { ActedVersion, BeforeCall, FileCall } from './acted-versions.js';
import {
  type AskedChange,
  askedChange,
  expectsText,
  hasShownLines,
  placesOf,
  type ReplacingChange,
} from './asked-change.js';
import {
  type EditSight,
  editSight,
  knownWhole,
  type OtherFile,
  type ReplacedText,
  type SeenOfFile,
} from './edit-sight.js';
import { type KnownText, sourcesOf } from './known-texts.js';
import { type SessionActors, sessionActors } from './session-actors.js';
import { ShownTexts } from './shown-texts.js';

const AT_ONCE = 8;

/** The part of a file in the request of an edit. */
interface InContext extends Pick<SeenOfFile, 'isRecorded' | 'whole' | 'isThere'> {
  /** The calls whose texts of the file it had. */
  readonly shown: readonly FileCall[];
  /** The other calls that it had and that named the file: searches and commands. */
  readonly others: readonly FileCall[];
}

/** The known facts about an edit and about the file in its request. */
interface OfEdit {
  readonly had: SeenOfFile;
  readonly before: BeforeCall;
  readonly shown: readonly FileCall[];
  readonly printed: readonly KnownText[];
  readonly call: SessionCall;
}

const numberAt = (versions: readonly ActedVersion[], at: number): number | undefined =>
  versions.findLast(({ validTime }) => validTime.getTime() <= at)?.number;

/** Finds what an agent had seen of each file when its calls changed the file, or tried to. */
class EditSights {
  readonly #timeline: Timeline;
  readonly #session: SessionId;
  readonly #actors: SessionActors;
  readonly #steps: readonly Step[];
  readonly #numbers: ReadonlyMap<number, number>;
  readonly #texts: ShownTexts;
  readonly #known = new Map<string, Promise<EditSight | undefined>>();

  constructor(timeline: Timeline, actors: SessionActors, of: { session: SessionId; steps: readonly Step[] }) {
    [this.#timeline, this.#actors, this.#session, this.#steps] = [timeline, actors, of.session, of.steps];
    this.#texts = new ShownTexts(timeline);
    this.#numbers = callNumbers(modelCallsOf(of.steps));
  }

  /** Returns the text of a file that an agent had seen at a call. Derives it once. */
  of(object: ObjectId, step: Step, call: SessionCall): Promise<EditSight | undefined> {
    return askOnce(this.#known, `${step.seq} ${object}`, () => this.#derive(object, step, call));
  }

  async #derive(object: ObjectId, { seq }: Step, call: SessionCall): Promise<EditSight | undefined> {
    const before = await this.#actors.before(object, seq);
    if (before === undefined) return undefined;
    const { seen, was, versions, name } = before;
    const change = askedChange(call, name);
    // A call that creates a file needs no text of it.
    if (was === undefined && before.shown.length === 0 && !expectsText(change)) return undefined;
    const { others, shown, ...context } = await this.#contextOf(object, seq, before);
    const { whole } = context;
    const isThere = context.isThere || whole !== undefined;
    const made = new Set(before.shown.flatMap(({ step, isMade }) => (isMade ? [step.seq] : [])));
    const printed = isThere && !expectsText(change) ? [] : await this.#texts.printed(others, name);
    const had: SeenOfFile = {
      ...{ ...context, isThere },
      seen: seen === undefined ? undefined : { number: seen.number, call: this.#numbers.get(seen.step) },
      was: was?.number,
      isOwnSince: versions
        .filter(({ number }) => number > (whole ?? 0) && number <= (seen?.number ?? 0))
        .every(({ by }) => by.kind === 'agent' && made.has(by.step ?? 0)),
      lines: shown.flatMap(({ lines }) => lines ?? []),
      printed: isThere || others.length === 0 ? undefined : printedBy(printed, change),
      later: laterBy(before, made),
    };
    const replaced = await this.#replacedOf(object, change, { had, before, shown, printed, call });
    const isElsewhere = replaced === 'missing' && call.failed && expectsText(change);
    return editSight(had, replaced, isElsewhere ? await this.#otherFile(change, { object, seq, name }) : undefined);
  }

  /** Returns another file, seen before a call, that has the texts that the call replaces. */
  async #otherFile(
    change: ReplacingChange,
    { object, seq, name }: { readonly object: ObjectId; readonly seq: number; readonly name: string },
  ): Promise<OtherFile | undefined> {
    for (const other of await this.#actors.seenBefore(seq)) {
      const { version, shown } = other;
      if (other.object === object) continue;
      const text = version === undefined ? undefined : await this.#actors.text(other.object, version);
      // The result of a search may have lines of several files.
      const parts = shown.filter(({ call, isMade }) => call.reads || isMade);
      const texts = text === undefined ? await this.#texts.of(parts, other.name) : [{ text, from: 'read' } as const];
      if (sourcesOf(change, texts) === undefined) continue;
      return { name: beside(other.name, name), version: text === undefined ? undefined : version };
    }
    return undefined;
  }

  /** Returns what the request of a call had of a file: by its transcript, or by its record. */
  async #contextOf(
    object: ObjectId,
    seq: number,
    { request, shown, was, name, ...of }: BeforeCall,
  ): Promise<InContext> {
    const isWritten = ({ call, isMade }: FileCall): boolean => isMade && askedChange(call, name)?.kind === 'write';
    // A version that was stored later may have an earlier valid time.
    const versions = of.versions.filter(({ number }) => number <= (was?.number ?? 0));
    if (await this.#timeline.isTranscript(this.#session)) {
      const presences = await (await this.#timeline.transcript(this.#session)).presences();
      const isShown = new Set(shown.map(({ step }) => step.seq));
      const known = (presences.get(object) ?? []).filter(({ from, until }) => isShown.has(from) && request < until);
      const isLeft = ({ call }: FileCall): boolean =>
        presences.get(call.id)?.some(({ whole, until }) => whole && request < until) === true;
      const isOwn = (one: FileCall): boolean => one.isMade && one.call.changes && isLeft(one);
      const here = shown.filter((one) => known.some(({ from }) => from === one.step.seq) || isOwn(one));
      const times = [
        ...known.flatMap(({ whole, at }) => (whole ? [at] : [])),
        ...here.flatMap((one) => (isWritten(one) ? [one.step.at] : [])),
      ];
      const wholes = times.flatMap((at) => numberAt(versions, at) ?? []);
      return {
        isRecorded: true,
        whole: wholes.length === 0 ? undefined : Math.max(...wholes),
        isThere: here.length > 0,
        shown: here,
        others: shown.filter((one) => !here.includes(one) && isLeft(one)),
      };
    }
    const sent = (await this.#timeline.requests(this.#session)).findLast(({ step }) => step < seq);
    if (sent?.kind !== 'sent' || sent.step < request) {
      const last = shown.findLast(
        (one) => isWritten(one) || (one.call.reads && one.lines === undefined && !one.isMade),
      );
      const whole = last === undefined ? undefined : numberAt(versions, last.step.at);
      return { isRecorded: false, whole, isThere: shown.length > 0, shown, others: [] };
    }
    const active = new Set<ObjectId>();
    for (const { changes } of this.#steps.filter((one) => one.seq <= sent.step)) {
      for (const id of changes.deactivate ?? []) active.delete(id);
      for (const id of changes.activate ?? []) active.add(id);
    }
    const there = shown.filter(({ call }) => active.has(call.id));
    const whole = active.has(object) ? numberAt(versions, sent.at) : undefined;
    return { isRecorded: true, whole, isThere: there.length > 0, shown: there, others: [] };
  }

  async #replacedOf(object: ObjectId, change: AskedChange | undefined, of: OfEdit): Promise<ReplacedText> {
    const { had, before, shown, printed, call } = of;
    const { seen, was, isOwnSince, later } = had;
    if (!expectsText(change) || !(had.isThere || printed.length > 0)) return undefined;
    const isStale = (was ?? 0) > (seen?.number ?? 0);
    const version = knownWhole(had);
    const text = version === undefined ? undefined : await this.#actors.text(object, version);
    if (version !== undefined) {
      const isSame = isOwnSince && later === undefined;
      // The tool found the text in a file that the agent knew.
      if (!call.failed && isSame && !isStale) return ['read'];
      const places = text === undefined ? 0 : placesOf(change, text);
      if (places === 1) return ['read'];
      if (places > 1) return call.failed ? places : ['read'];
      if (text !== undefined && isSame) return 'missing';
    }
    const step = before.versions.find(({ number }) => number === version)?.by.step ?? 0;
    const whole = text === undefined ? undefined : { text, step };
    const texts = [...(await this.#texts.of(shown, before.name, whole)), ...printed];
    const sources = sourcesOf(change, texts);
    if (sources !== undefined)
      return sources.map((source) => (typeof source === 'number' ? { edit: this.#numbers.get(source) } : source));
    if (had.printed === 'perhaps') return undefined;
    // The agent may know a text that its own edits made of parts, or that a listing showed.
    const lines = texts.map((one) => one.text);
    const mayKnow = !call.failed || (later !== undefined && hasShownLines(change, lines));
    return mayKnow ? 'not recorded' : 'missing';
  }
}

/** Returns which calls printed lines of the file that the agent had not read. */
function printedBy(printed: readonly KnownText[], change: AskedChange | undefined): SeenOfFile['printed'] {
  const sources = expectsText(change) ? sourcesOf(change, printed) : undefined;
  if (sources?.includes('command')) return 'command';
  return printed.some(({ from }) => from === 'search') ? 'search' : 'perhaps';
}

/** Returns the author of the changes without a recorded text. `made`: steps of own edits. */
function laterBy({ lost }: BeforeCall, made: ReadonlySet<number>): SeenOfFile['later'] {
  if (lost.length === 0) return undefined;
  if (lost.every(({ isSure }) => !isSure)) return 'perhaps';
  return lost.every(({ isSure, step, by }) => isSure && by.kind === 'agent' && made.has(step.seq)) ? 'agent' : 'other';
}

/** Returns the path of a file, or only its name if it is in the folder of another file. */
function beside(path: string, other: string): string {
  const folderOf = (one: string): string => one.replace(/[^/\\]*$/, '');
  const folder = folderOf(path);
  return folder === folderOf(other) ? path.slice(folder.length) : path;
}

const sightsOf = new WeakMap<SessionActors, EditSights>();

/** A call that changed files, or tried to, with the texts that the agent had seen of them. */
export interface SeenByEdit {
  readonly call: ObjectId;
  readonly name: string;
  readonly files: ReadonlyMap<ObjectId, EditSight>;
}

/**
 * Returns what the agent had seen of the files that some calls of a session changed by their tools,
 * or tried to: by step.
 */
export async function editSights(
  asked: Timeline,
  session: SessionId,
  isWanted: (step: Step, call: SessionCall) => boolean,
): Promise<ReadonlyMap<number, SeenByEdit>> {
  const timeline = await asked.of(session);
  const [actors, steps] = await Promise.all([sessionActors(timeline, session), timeline.steps(session)]);
  const sights = sightsOf.get(actors) ?? new EditSights(timeline, actors, { session, steps });
  sightsOf.set(actors, sights);
  const edits = actors.edits.filter(({ step, call }) => isWanted(step, call));
  const found = new Map<number, SeenByEdit>();
  await pLimit(AT_ONCE).map(edits, async ({ step, call }) => {
    const all = await Promise.all(call.fileRefs.map(async (id) => [id, await sights.of(id, step, call)] as const));
    const files = new Map(all.flatMap(([id, sight]) => (sight === undefined ? [] : [[id, sight] as const])));
    found.set(step.seq, { call: call.id, name: call.name, files });
  });
  return found;
}
