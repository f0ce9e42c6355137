import { posix } from 'node:path';
import { textAt } from '../entries/fields.js';
import type { DocumentItem } from '../json/document-walk.js';
import { isJsonObject, type JsonObject, parseJson } from '../json/json-text.js';

/** One step of a trajectory: an action and what the environment answered. */
export interface SweAgentStep {
  readonly index: number;
  readonly action: string;
  readonly observation: string | undefined;
  readonly response: string | undefined;
  readonly openFile: string | undefined;
  readonly workingDir: string | undefined;
}

const named = (name: string | undefined): string | undefined => (name === undefined || name === '' || name === 'n/a' ? undefined : name);

function stepOf({ path, value }: DocumentItem): SweAgentStep {
  const step: JsonObject = isJsonObject(value) ? value : {};
  const given = typeof step.state === 'string' ? parseJson(step.state) : step.state;
  const state = isJsonObject(given) ? given : undefined;
  return {
    index: Number(path[1]),
    action: textAt(step, 'action') ?? '',
    observation: textAt(step, 'observation'),
    response: named(textAt(step, 'response')) ?? textAt(step, 'thought'),
    openFile: named(textAt(state, 'open_file')),
    workingDir: named(textAt(state, 'working_dir')),
  };
}

/** A path that a window or an editor names, with the folder that the environment was in; the open file tells it whole. */
export function pathInStep(path: string, { openFile, workingDir }: Pick<SweAgentStep, 'openFile' | 'workingDir'>): string {
  if (path.startsWith('/')) return path;
  const bare = posix.normalize(path);
  if (openFile === bare || openFile?.endsWith(`/${bare}`) === true) return openFile;
  return workingDir === undefined ? path : posix.join(workingDir, path);
}

/** How many steps are looked at for the one that an action of the history belongs to. */
const LOOK_AHEAD = 4;

/** The steps of a trajectory beside the history, read at the same pace, so that neither is in memory. */
export class StepsBeside {
  private readonly items: AsyncIterator<DocumentItem>;
  private readonly ahead: SweAgentStep[] = [];
  private ended = false;

  constructor(items: AsyncIterable<DocumentItem>) {
    this.items = items[Symbol.asyncIterator]();
  }

  /** The first step that was not taken. */
  async peek(): Promise<SweAgentStep | undefined> {
    await this.fill(1);
    return this.ahead[0];
  }

  async next(): Promise<SweAgentStep | undefined> {
    await this.fill(1);
    return this.ahead.shift();
  }

  /** The step of an action, the ones in front of it left behind; undefined where none of the next ones is it, and then none is taken. */
  async of(action: string): Promise<SweAgentStep | undefined> {
    for (let at = 0; at < LOOK_AHEAD; at += 1) {
      await this.fill(at + 1);
      const step = this.ahead[at];
      if (step === undefined) return undefined;
      if (step.action.trim() === action.trim()) {
        this.ahead.splice(0, at + 1);
        return step;
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.ended = true;
    await this.items.return?.();
  }

  private async fill(count: number): Promise<void> {
    while (!this.ended && this.ahead.length < count) {
      const next = await this.items.next();
      if (next.done === true) this.ended = true;
      else this.ahead.push(stepOf(next.value));
    }
  }
}
