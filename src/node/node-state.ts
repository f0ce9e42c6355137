import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { createWholeFile, livingOwners, parseJson, removeDeadFiles, replaceFile } from '../process/owned-file.js';
import { identifySelf, isAlive, type ProcessIdentity, processIdentitySchema } from '../process/process-identity.js';
import type { DataFolder } from './data-folder.js';
import type { NodeErrorCode } from './errors.js';

/** All profiles, for messages and for reading one. */
export const NODE_PROFILES = ['memory', 'rocksdb', 'postgres', 'kafka'] as const;
/**
 * Where the node keeps log and documents: `memory` forgets everything when it stops, `rocksdb` has them in the data folder; `postgres` and `kafka` share
 * them with other nodes, and only the index lies in the data folder.
 */
export type NodeProfile = (typeof NODE_PROFILES)[number];

/** The profiles whose log other nodes share. */
export const sharesLog = (profile: string | undefined): profile is 'postgres' | 'kafka' => profile === 'postgres' || profile === 'kafka';

/** Where a started node stands: `restarting` means it crashed and will be back, `failed` is final. */
export type NodePhase = 'starting' | 'ready' | 'restarting' | 'stopping' | 'failed';

const addressSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('unix'), socketPath: z.string() }),
  z.object({ kind: z.literal('tcp'), origin: z.string(), token: z.string() }),
]);

/** How far an index has come, in transactions. */
export const indexingSchema = z.object({ indexed: z.int().nonnegative(), of: z.int().nonnegative() });

/** How far the index of a node that starts has come: `indexed` of the `of` transactions that its log held when it was started. */
export type Indexing = Readonly<z.infer<typeof indexingSchema>>;

const stateSchema = z.object({
  format: z.literal(1),
  phase: z.enum(['starting', 'ready', 'restarting', 'stopping', 'failed']),
  supervisor: processIdentitySchema,
  /** The JVM; null while none runs. */
  jvm: processIdentitySchema.nullable(),
  /** Null until the node has said it is ready. */
  address: addressSchema.nullable(),
  profile: z.enum(NODE_PROFILES),
  /** XTDB's version; null until the node has said it. */
  version: z.string().nullable(),
  /** ISO instant of the first start. */
  startedAt: z.string(),
  restarts: z.int().nonnegative(),
  /** How the JVM ended last; null when it never did. `reason` is there when its supervisor ended it because it took no more writes: why it did not. */
  frontExit: z
    .object({ code: z.int().nullable(), signal: z.string().nullable(), at: z.string(), reason: z.string().optional() })
    .nullable(),
  /** Set in phase `failed` only. */
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** How far the index of a node that starts has come, in transactions; absent or null while nothing is known of it. */
  indexing: indexingSchema.nullish(),
});

/** The address of a node that we started ourselves. */
export type OwnNodeAddress = z.infer<typeof addressSchema>;

/** Where a node listens, for whoever may not use it: a token is left out. */
export type ShownAddress = { readonly kind: 'unix'; readonly socketPath: string } | { readonly kind: 'tcp'; readonly origin: string };

/** An address as it may be printed. */
export function shownAddress(address: OwnNodeAddress): ShownAddress {
  return address.kind === 'unix' ? address : { kind: 'tcp', origin: address.origin };
}

/** What `node.json` says: written by the supervisor alone, read by everybody else. */
export type NodeState = Readonly<z.infer<typeof stateSchema>> & {
  readonly failure: { readonly code: NodeErrorCode | string; readonly message: string } | null;
};

/** The state of a node whose supervisor has just been started. */
export function startingState(supervisor: ProcessIdentity, profile: NodeProfile): NodeState {
  return {
    format: 1,
    phase: 'starting',
    supervisor,
    jvm: null,
    address: null,
    profile,
    version: null,
    startedAt: new Date().toISOString(),
    restarts: 0,
    frontExit: null,
    failure: null,
  };
}

/** Reads the state file; undefined when there is none or it cannot be understood (half written, or from another version), which both mean that no node is known. */
export async function readState(path: string): Promise<NodeState | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : parseJson(text, stateSchema);
}

/** Replaces the state file in one step; readable by its user alone, since an address may carry a token. */
export async function writeState(path: string, state: NodeState): Promise<void> {
  await replaceFile(path, `${JSON.stringify(state, null, 2)}\n`);
}

/** Writes the first state of a supervisor on its behalf, unless it has already done so itself. */
export async function announceState(path: string, state: NodeState): Promise<void> {
  await createWholeFile(path, JSON.stringify(state));
}

/** Removes the state file if it still belongs to that supervisor, so that nobody removes the state of a successor. */
export async function removeState(path: string, supervisor: ProcessIdentity): Promise<void> {
  const state = await readState(path);
  if (state === undefined || (state.supervisor.pid === supervisor.pid && state.supervisor.started === supervisor.started)) {
    await rm(path, { force: true });
  }
}

/** What the state file and the processes it names say together. */
export type NodeLiveness =
  /** Nothing runs: no state, or one that a crash left behind. */
  | { readonly kind: 'none'; readonly state: NodeState | undefined }
  | { readonly kind: 'supervised'; readonly state: NodeState }
  /** The supervisor was killed and the JVM was not: it works, but nobody would start it again. */
  | { readonly kind: 'orphaned'; readonly state: NodeState };

/** Judges a state by which of its processes live. */
export function judgeLiveness(state: NodeState | undefined, alive: { readonly supervisor: boolean; readonly jvm: boolean }): NodeLiveness {
  if (state === undefined) return { kind: 'none', state };
  if (alive.supervisor && state.phase !== 'failed') return { kind: 'supervised', state };
  if (alive.jvm) return { kind: 'orphaned', state };
  return { kind: 'none', state };
}

/** Reads the state of a data folder and checks whether its processes live. */
export async function readLiveness(folder: DataFolder): Promise<NodeLiveness> {
  const state = await readState(folder.stateFile);
  if (state === undefined) return judgeLiveness(undefined, { supervisor: false, jvm: false });
  const [supervisor, jvm] = await Promise.all([isAlive(state.supervisor), state.jvm === null ? false : isAlive(state.jvm)]);
  return judgeLiveness(state, { supervisor, jvm });
}

/** A registration of this process as a user of a node. */
export interface Registration {
  /** Ends the registration. Idempotent. */
  remove(): Promise<void>;
}

/** Registers this process as a user of the node; the last user that leaves may stop the node. */
export async function registerUser(folder: DataFolder): Promise<Registration> {
  const path = join(folder.usersDir, `${randomUUID()}.json`);
  await replaceFile(path, JSON.stringify(await identifySelf()));
  return { remove: () => rm(path, { force: true }) };
}

/** How many registrations of living processes there are. Changes nothing. */
export async function countUsers(folder: DataFolder): Promise<number> {
  const users = await livingOwners(folder.usersDir, processIdentitySchema).catch(() => []);
  return users.length;
}

/** Removes the registrations of processes that died without leaving. */
export async function removeDeadUsers(folder: DataFolder): Promise<void> {
  await removeDeadFiles(folder.usersDir, processIdentitySchema);
}
