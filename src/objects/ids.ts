import { posix } from 'node:path';
import { DocumentError, quoted } from './errors.js';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** A SHA-256 digest: 64 lower-case hexadecimal digits. */
export type Sha256 = Branded<'Sha256'>;
/** The namespace of a canonical path [§5.4]. */
export type FilesystemId = Branded<'FilesystemId'>;
/** A path as the agent writes and sees it [§5.3]; may be relative. */
export type AgentPath = Branded<'AgentPath'>;
/** An absolute, POSIX-normalised path on the host. A source binding holds only this kind [§2.3]. */
export type CanonicalPath = Branded<'CanonicalPath'>;
/** The `xt/id` of any object [§2.2]. */
export type ObjectId = Branded<'ObjectId'>;
/**
 * The `xt/id` of a part. No object can have one, because `objectId` rejects it. Only the store
 * creates them.
 */
export type PartId = Branded<'PartId'>;
/** The stable identifier of a session [§3.1], without the `session:` prefix of its object id. */
export type SessionId = Branded<'SessionId'>;

const DIGEST = /^[0-9a-f]{64}$/;
const SESSION = /^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}$/;
const LONGEST_ID = 512;
/**
 * Leaves room for a harness's id of 400 characters followed by the ids of its session and of forks.
 */
const LONGEST_OBJECT_ID = 1_024;
const LONGEST_PATH = 4096;

function requireText(value: string, what: string, longest: number): void {
  if (value === '') throw new DocumentError('invalid-id', `${what} is empty`);
  if (value.length > longest)
    throw new DocumentError('invalid-id', `${what} ${quoted(value)} is longer than ${longest} characters`);
  if (!value.isWellFormed())
    throw new DocumentError(
      'lone-surrogate',
      `${what} ${quoted(value)} contains a lone surrogate and cannot be stored exactly`,
    );
}

/** Checks that a text is exactly 64 lower-case hexadecimal digits. */
export function sha256(value: string): Sha256 {
  if (!DIGEST.test(value))
    throw new DocumentError(
      'invalid-id',
      `${quoted(value)} is not a SHA-256 digest; use 64 lower-case hexadecimal digits`,
    );
  return value as Sha256;
}

/**
 * Accepts any non-empty text. The database trusts declared ids [§5.4].
 *
 * @example
 * ```ts
 * const filesystem = filesystemId('laptop-1');
 * ```
 */
export function filesystemId(value: string): FilesystemId {
  requireText(value, 'filesystem id', LONGEST_ID);
  return value as FilesystemId;
}

/** The filesystem of a client that reads no files, such as a replay's. No file is on it. */
export const NO_FILESYSTEM = filesystemId('replay-none');

function requirePath(value: string): void {
  if (value === '') throw new DocumentError('invalid-path', 'the path is empty; name a file or a folder');
  if (value.includes('\0')) throw new DocumentError('invalid-path', `the path ${quoted(value)} holds a NUL character`);
  if (value.length > LONGEST_PATH)
    throw new DocumentError('invalid-path', `the path ${quoted(value)} is longer than ${LONGEST_PATH} characters`);
  if (!value.isWellFormed())
    throw new DocumentError('lone-surrogate', `the path ${quoted(value)} contains a lone surrogate`);
}

/** Accepts a path from an agent: non-empty, without NUL, well-formed. Does not normalise it. */
export function agentPath(value: string): AgentPath {
  requirePath(value);
  return value as AgentPath;
}

/**
 * Matches the parts of an absolute path that normalising changes: an empty name, a name of one or
 * two dots, a trailing slash.
 */
const NOT_NORMAL = /\/\.{0,2}(?:\/|$)/;

/**
 * Accepts an absolute path and normalises it by POSIX rules. Never follows links, folds case or
 * normalises Unicode (decision C9).
 *
 * @example
 * ```ts
 * canonicalPath('/home/me/project/./src'); // /home/me/project/src
 * ```
 */
export function canonicalPath(value: string): CanonicalPath {
  requirePath(value);
  if (!posix.isAbsolute(value))
    throw new DocumentError('invalid-path', `the canonical path ${quoted(value)} is not absolute`);
  if (!NOT_NORMAL.test(value)) return value as CanonicalPath;
  const normal = posix.normalize(value);
  return (normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal).replace(
    /^\/\/+/,
    '/',
  ) as CanonicalPath;
}

const PART = /^(?:step|snapshot|assembly|record|import|line|chunks?|erased|unproved):.*~$/s;

/**
 * Returns whether a text is the id of a database part, such as a step or a text chunk, in data
 * format 2.
 */
export function isPartId(id: string): id is PartId {
  return PART.test(id);
}

/**
 * Accepts any non-empty, well-formed text of at most 1,024 characters that is not the id of a part.
 * Every version passes this check, so no object can replace a part.
 *
 * @example
 * ```ts
 * const chat = objectId('chat:fix-cart');
 * ```
 */
export function objectId(value: string): ObjectId {
  requireText(value, 'object id', LONGEST_OBJECT_ID);
  if (isPartId(value))
    throw new DocumentError(
      'invalid-id',
      `${quoted(value)} names a part of the database, not an object; use another id`,
    );
  return value as ObjectId;
}

/**
 * Accepts at most 200 letters, digits and `. _ : @ + -`, beginning with a letter or digit.
 *
 * @example
 * ```ts
 * const session = sessionId('fix-cart');
 * ```
 */
export function sessionId(value: string): SessionId {
  if (!SESSION.test(value)) {
    throw new DocumentError(
      'invalid-id',
      `${quoted(value)} is not a session id: use up to 200 letters, digits and . _ : @ + -, first a letter or digit`,
    );
  }
  return value as SessionId;
}

/**
 * The id of a session's session object. A session has three infrastructure objects (decision B1).
 */
export const sessionObjectId = (session: SessionId): ObjectId => `session:${session}` as ObjectId;
/** The id of a session's chat object [§2.5]. */
export const chatObjectId = (session: SessionId): ObjectId => `chat:${session}` as ObjectId;
/** The id of a session's system prompt object [§2.5]. */
export const systemPromptObjectId = (session: SessionId): ObjectId => `system_prompt:${session}` as ObjectId;

const INFRASTRUCTURE = /^(?:session|chat|system_prompt):(.*)$/s;

/**
 * Returns whether an id has a fixed form of infrastructure objects, which an agent never activates
 * [§2.1].
 */
export function isInfrastructureId(id: string): boolean {
  return SESSION.test(INFRASTRUCTURE.exec(id)?.[1] ?? '');
}

/**
 * A session's name in the ids of its calls. An `@` in an id always precedes the name of the call's
 * session.
 */
const callName = (session: SessionId): string => session.replaceAll('@', '!');

/** Returns the suffix that only ids of this session's calls have (divergence B2). */
export const callSuffix = (session: SessionId): string => `@${callName(session)}`;

/**
 * Returns the id of a step's call if the harness gives calls no ids (decision B2). `losses` counts
 * damaged journals that may have held a call of the same number (decision 0011).
 */
export const stepCallId = (session: SessionId, seq: number, losses = 0): ObjectId =>
  `${callName(session)}:${losses === 0 ? '' : `${losses}.`}${seq}` as ObjectId;

/** Returns the session whose `stepCallId` an id may be. Undefined for an id of another form. */
export function sessionOfStepCall(id: string): SessionId | undefined {
  const name = /^(.+):(?:\d+\.)?\d+$/s.exec(id)?.[1]?.replaceAll('!', '@') ?? '';
  return SESSION.test(name) ? (name as SessionId) : undefined;
}

/**
 * Returns whether a harness's call id could name something else: part of a session, a file, a
 * database part, or another session's call.
 */
export function isReservedCallId(id: string): boolean {
  return isInfrastructureId(id) || DIGEST.test(id) || id.startsWith('/') || isPartId(id) || id.includes('@');
}
