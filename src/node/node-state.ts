import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { createWholeFile, livingOwners, parseJson, removeDeadFiles, replaceFile } from '../process/owned-file.js';
import { identifySelf, isAlive, type ProcessIdentity, processIdentitySchema } from '../process/process-identity.js';
import type { DataFolder } from './data-folder.js';
import type { NodeErrorCode } from './errors.js';

/** All profiles, for messages and for parsing. */
export const NODE_PROFILES = ['memory', 'rocksdb', 'postgres', 'kafka'] as const;
/**
 * Where the node stores log and documents. `memory`: they are lost when the node stops. `rocksdb`:
 * in the data folder. `postgres` and `kafka`: shared with other nodes; only the index is in the
 * data folder.
 */
export type NodeProfile = (typeof NODE_PROFILES)[number];

/** Returns whether other nodes share the log of a profile. */
export const sharesLog = (profile: string | undefined): profile is 'postgres' | 'kafka' =>
  profile === 'postgres' || profile === 'kafka';

/**
 * The phase of a started node. `restarting`: it crashed and is being restarted. `failed` is final.
 */
export type NodePhase = 'starting' | 'ready' | 'restarting' | 'stopping' | 'failed';

const addressSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('unix'), socketPath: z.string() }),
  z.object({ kind: z.literal('tcp'), origin: z.string(), token: z.string() }),
]);

/** Indexing progress in transactions. */
export const indexingSchema = z.object({ indexed: z.int().nonnegative(), of: z.int().nonnegative() });

/**
 * The indexing progress of a starting node: `indexed` of the `of` transactions in its log at the
 * start.
 */
export type Indexing = Readonly<z.infer<typeof indexingSchema>>;

const stateSchema = z.object({
  format: z.literal(1),
  phase: z.enum(['starting', 'ready', 'restarting', 'stopping', 'failed']),
  supervisor: processIdentitySchema,
  /** The JVM; null if none runs. */
  jvm: processIdentitySchema.nullable(),
  /** The node's address. Null until it is ready. */
  address: addressSchema.nullable(),
  profile: z.enum(NODE_PROFILES),
  /** XTDB's version; null until the node has reported it. */
  version: z.string().nullable(),
  /** ISO instant of the first start. */
  startedAt: z.string(),
  restarts: z.int().nonnegative(),
  /**
   * The last exit of the JVM; null if it never exited. `reason` is set if the supervisor ended the
   * JVM, and says why the JVM accepted no more writes.
   */
  frontExit: z
    .object({ code: z.int().nullable(), signal: z.string().nullable(), at: z.string(), reason: z.string().optional() })
    .nullable(),
  /** The reason of the failure. Only set in phase `failed`. */
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** The indexing progress of a starting node in transactions; absent or null while unknown. */
  indexing: indexingSchema.nullish(),
});

/** The address of a node that we started. */
export type OwnNodeAddress = z.infer<typeof addressSchema>;

/** The printable address of a node, without its token. */
export type ShownAddress =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly origin: string };

/** Returns a printable address. */
export function shownAddress(address: OwnNodeAddress): ShownAddress {
  return address.kind === 'unix' ? address : { kind: 'tcp', origin: address.origin };
}

/** The content of `node.json`. Only the supervisor writes it. */
export type NodeState = Readonly<z.infer<typeof stateSchema>> & {
  readonly failure: { readonly code: NodeErrorCode | string; readonly message: string } | null;
};

/** Returns the state of a node whose supervisor has just been started. */
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

/**
 * Reads the state file. Undefined if it is missing, incomplete or from another version. The node is
 * then unknown.
 */
export async function readState(path: string): Promise<NodeState | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : parseJson(text, stateSchema);
}

/**
 * Replaces the state file atomically. Only its user may read it, because an address may contain a
 * token.
 */
export async function writeState(path: string, state: NodeState): Promise<void> {
  await replaceFile(path, `${JSON.stringify(state, null, 2)}\n`);
}

/** Writes the first state on behalf of a supervisor, unless it has already done so itself. */
export async function announceState(path: string, state: NodeState): Promise<void> {
  await createWholeFile(path, JSON.stringify(state));
}

/** Removes the state file if it still belongs to this supervisor. A successor's file is kept. */
export async function removeState(path: string, supervisor: ProcessIdentity): Promise<void> {
  const state = await readState(path);
  if (
    state === undefined ||
    (state.supervisor.pid === supervisor.pid && state.supervisor.started === supervisor.started)
  ) {
    await rm(path, { force: true });
  }
}

/** Whether the processes in the state file are alive. */
export type NodeLiveness =
  /** No process runs. There is no state, or a crash left the file. */
  | { readonly kind: 'none'; readonly state: NodeState | undefined }
  | { readonly kind: 'supervised'; readonly state: NodeState }
  /** The supervisor was killed. The JVM still works, but no process would restart it. */
  | { readonly kind: 'orphaned'; readonly state: NodeState };

/** Derives liveness from a state and its living processes. */
export function judgeLiveness(
  state: NodeState | undefined,
  alive: { readonly supervisor: boolean; readonly jvm: boolean },
): NodeLiveness {
  if (state === undefined) return { kind: 'none', state };
  if (alive.supervisor && state.phase !== 'failed') return { kind: 'supervised', state };
  if (alive.jvm) return { kind: 'orphaned', state };
  return { kind: 'none', state };
}

/** Reads the state of a data folder and checks whether its processes live. */
export async function readLiveness(folder: DataFolder): Promise<NodeLiveness> {
  const state = await readState(folder.stateFile);
  if (state === undefined) return judgeLiveness(undefined, { supervisor: false, jvm: false });
  const [supervisor, jvm] = await Promise.all([
    isAlive(state.supervisor),
    state.jvm === null ? false : isAlive(state.jvm),
  ]);
  return judgeLiveness(state, { supervisor, jvm });
}

/** A registration of this process as a user of a node. */
export interface Registration {
  /** Ends the registration. Idempotent. */
  remove(): Promise<void>;
}

/** Registers this process as a user of the node. The last user that leaves may stop the node. */
export async function registerUser(folder: DataFolder): Promise<Registration> {
  const path = join(folder.usersDir, `${randomUUID()}.json`);
  await replaceFile(path, JSON.stringify(await identifySelf()));
  return { remove: () => rm(path, { force: true }) };
}

/** Returns the number of registrations of living processes. Read-only. */
export async function countUsers(folder: DataFolder): Promise<number> {
  const users = await livingOwners(folder.usersDir, processIdentitySchema).catch(() => []);
  return users.length;
}

/** Removes the registrations of processes that died. */
export async function removeDeadUsers(folder: DataFolder): Promise<void> {
  await removeDeadFiles(folder.usersDir, processIdentitySchema);
}
