import pLimit from 'p-limit';
import { readText } from '../../harness/tool-output/read-output.js';
import { callNumbers, modelCallsOf } from '../../history/rebuild/model-calls.js';
import { shownCalls } from '../../history/rebuild/shown-calls.js';
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
  isShownIn,
  placesOf,
  putTexts,
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
import { type SessionActors, sessionActors } from './session-actors.js';

const AT_ONCE = 8;

/** The part of a file in the request of an edit. */
interface InContext extends Pick<SeenOfFile, 'isRecorded' | 'whole' | 'isThere'> {
  /** The calls whose texts of the file it had. */
  readonly shown: readonly FileCall[];
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
  readonly #results = new Map<ObjectId, Promise<string>>();
  readonly #known = new Map<string, Promise<EditSight | undefined>>();

  constructor(timeline: Timeline, actors: SessionActors, of: { session: SessionId; steps: readonly Step[] }) {
    [this.#timeline, this.#actors, this.#session, this.#steps] = [timeline, actors, of.session, of.steps];
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
    const context = await this.#contextOf(object, seq, before);
    const { whole, shown, isThere } = context;
    const later = versions.filter(({ number }) => number > (whole ?? 0) && number <= (seen?.number ?? 0));
    const made = new Set(before.shown.flatMap(({ step, isMade }) => (isMade ? [step.seq] : [])));
    const had: SeenOfFile = {
      ...context,
      isThere: isThere || whole !== undefined,
      seen: seen === undefined ? undefined : { number: seen.number, call: this.#numbers.get(seen.step) },
      was: was?.number,
      isOwnSince: later.every(({ by }) => by.kind === 'agent' && made.has(by.step ?? 0)),
      lines: shown.flatMap(({ lines }) => lines ?? []),
    };
    const replaced = await this.#replacedOf(object, change, { had, before, shown, call });
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
      const texts = text === undefined ? await this.#texts(parts, other.name) : [text];
      if (!isShownIn(change, texts)) continue;
      return { name: beside(other.name, name), version: text === undefined ? undefined : version };
    }
    return undefined;
  }

  /** Returns what the request of a call had of a file: by its transcript, or by its record. */
  async #contextOf(object: ObjectId, seq: number, { request, shown, was, ...of }: BeforeCall): Promise<InContext> {
    // A version that was stored later may have an earlier valid time.
    const versions = of.versions.filter(({ number }) => number <= (was?.number ?? 0));
    if (await this.#timeline.isTranscript(this.#session)) {
      const presences = (await (await this.#timeline.transcript(this.#session)).presences()).get(object) ?? [];
      const isShown = new Set(shown.map(({ step }) => step.seq));
      const known = presences.filter(({ from, until }) => isShown.has(from) && request < until);
      const wholes = known.flatMap(({ whole, at }) => (whole ? (numberAt(versions, at) ?? []) : []));
      return {
        isRecorded: true,
        whole: wholes.length === 0 ? undefined : Math.max(...wholes),
        isThere: known.length > 0,
        shown: shown.filter(({ step }) => known.some(({ from }) => from === step.seq)),
      };
    }
    const sent = (await this.#timeline.requests(this.#session)).findLast(({ step }) => step < seq);
    if (sent?.kind !== 'sent' || sent.step < request) {
      const last = shown.findLast(({ call, lines, isMade }) => call.reads && lines === undefined && !isMade);
      const whole = last === undefined ? undefined : numberAt(versions, last.step.at);
      return { isRecorded: false, whole, isThere: shown.length > 0, shown };
    }
    const active = new Set<ObjectId>();
    for (const { changes } of this.#steps.filter((one) => one.seq <= sent.step)) {
      for (const id of changes.deactivate ?? []) active.delete(id);
      for (const id of changes.activate ?? []) active.add(id);
    }
    const there = shown.filter(({ call }) => active.has(call.id));
    const whole = active.has(object) ? numberAt(versions, sent.at) : undefined;
    return { isRecorded: true, whole, isThere: there.length > 0, shown: there };
  }

  async #replacedOf(
    object: ObjectId,
    change: AskedChange | undefined,
    of: { had: SeenOfFile; before: BeforeCall; shown: readonly FileCall[]; call: SessionCall },
  ): Promise<ReplacedText> {
    const { had, before, shown, call } = of;
    if (!expectsText(change) || !had.isThere) return undefined;
    const { seen, was, isOwnSince } = had;
    const isStale = (was ?? 0) > (seen?.number ?? 0);
    const version = knownWhole(had);
    if (version !== undefined) {
      // The tool found the text in a file that the agent knew.
      if (!call.failed && isOwnSince && !isStale) return 'there';
      const text = await this.#actors.text(object, version);
      const places = text === undefined ? 0 : placesOf(change, text);
      if (places === 1) return 'there';
      if (places > 1) return call.failed ? places : 'there';
      if (text !== undefined && isOwnSince && !before.isLost) return 'missing';
    }
    const parts = await this.#texts(shown, before.name);
    if (isShownIn(change, parts)) return 'there';
    // The agent may know a text that its own edits made of parts, or that a listing showed.
    const mayKnow = !call.failed || (before.isLost && hasShownLines(change, parts));
    return mayKnow ? 'not recorded' : 'missing';
  }

  /** Returns the texts of a file that some calls showed or put into it. Joins adjacent lines. */
  async #texts(shown: readonly FileCall[], path: string): Promise<readonly string[]> {
    const fresh = shown.filter(({ call, isMade }) => !isMade && !this.#results.has(call.id));
    const read = shownCalls(
      this.#timeline.present,
      fresh.map(({ step }) => step),
    );
    for (const { call } of fresh)
      this.#results.set(
        call.id,
        read.then((all) => all.get(call.id)?.result ?? ''),
      );
    const results = new Map<ObjectId, string>();
    for (const { call } of shown) results.set(call.id, (await this.#results.get(call.id)) ?? '');
    const numbered = new Map<number, string>();
    const texts = shown.flatMap(({ call, isMade }): readonly string[] => {
      if (isMade) {
        const change = askedChange(call, path);
        return change === undefined ? [] : putTexts(change);
      }
      const output = results.get(call.id) ?? '';
      const read = readText({ args: call.args, output, truncated: false });
      for (const [i, line] of (read?.text.split('\n') ?? []).entries()) numbered.set((read?.startLine ?? 1) + i, line);
      return [read?.text ?? output];
    });
    return [...texts, ...runsOf(numbered)];
  }
}

/** Returns the path of a file, or only its name if it is in the folder of another file. */
function beside(path: string, other: string): string {
  const folderOf = (one: string): string => one.replace(/[^/\\]*$/, '');
  const folder = folderOf(path);
  return folder === folderOf(other) ? path.slice(folder.length) : path;
}

/** Joins lines with consecutive numbers. */
function runsOf(lines: ReadonlyMap<number, string>): readonly string[] {
  const runs: string[][] = [];
  let last = Number.NaN;
  for (const [number, line] of [...lines].sort(([a], [b]) => a - b)) {
    if (number === last + 1) runs.at(-1)?.push(line);
    else runs.push([line]);
    last = number;
  }
  return runs.map((run) => run.join('\n'));
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
