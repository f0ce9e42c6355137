import type { IncomingMessage, ServerResponse } from 'node:http';
import type * as z from 'zod';
import type { DisplayPaths } from '../assembly/metadata.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { SessionSummary } from '../client/session/open-session.js';
import type { FindHiddenTexts } from '../history/rebuild/hidden-texts.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import type { Backend } from '../host/backend.js';
import type { Logger } from '../host/log.js';
import type { ServerSettings } from '../host/settings.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { ObjectStore } from '../store/object-store.js';
import type { ErrorStatus } from './problem.js';

/**
 * The cost of a question: `short` reads one moment, `long` rebuilds many contexts, `stream` sends
 * as slowly as its client reads. Each kind has a queue, so that a few long questions do not delay
 * short ones. All queues together use only some of the node's parallel queries, and leave the rest
 * to sessions.
 */
export type QuestionKind = 'short' | 'long' | 'stream';

/** Schemas by their names in the OpenAPI document. */
export type Schemas = Readonly<Record<string, z.ZodType>>;

/** The sessions and objects that a question may read. */
export interface PastAccess {
  /** @throws {SessionError} `other-roots` – the session may not be opened here */
  requireSession(session: SessionId): Promise<void>;
  /** @throws {SessionError} `other-roots` – the named session may not be opened here */
  requireNamed(reference: string): Promise<void>;
  /**
   * @throws {SourceError} `outside-roots` – a file outside the folders of this server
   * @throws {SessionError} `other-roots` – an object of a session that may not be opened here
   */
  requireObject(id: ObjectId): Promise<void>;
  /** @throws {ApiError} `forbidden` – this server does not share sessions */
  requireShared(): void;
  /** Returns the findings whose sessions may be opened here. */
  openable<T extends { readonly session: SessionId | string }>(found: readonly T[]): Promise<readonly T[]>;
}

/** The folders of a server. */
export interface DataFolders {
  readonly dataDir: string;
  readonly clientDir: string;
}

/** The sources of an answer about the past and its access rules. */
export interface AskedPast {
  readonly timeline: Timeline;
  readonly access: PastAccess;
  readonly client: ContextClient;
  /** Whether questions are answered about every session and file. */
  readonly all: boolean;
  /** Finds the texts that the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
  /** The data folder and the folder of this server's client. Set only if the reader owns them. */
  readonly folders?: DataFolders;
}

/** A person's permissions on a server, beyond questions. */
export interface PersonSettings {
  /** Whether the person owns the data folder and may see everything in it. */
  readonly all: boolean;
  /** Folders that copies of files may be written to. */
  readonly copyRoots: readonly string[];
}

/** A request to an operation. */
export interface Exchange {
  readonly backend: Backend;
  /**
   * Returns the client once the database answers. @throws {ApiError} node-starting – it does not
   * answer in time
   */
  readonly client: () => Promise<ContextClient>;
  /** The session of the path; empty for none. */
  readonly id: string;
  readonly person: PersonSettings;
  /** Returns the titles of sessions that the reader may see. */
  readonly titlesOf: (
    client: ContextClient,
    sessions: readonly SessionSummary[],
  ) => Promise<ReadonlyMap<string, string>>;
}

/**
 * One operation of the interface. The router matches it, and the OpenAPI document lists it. Only an
 * operation that may be skipped after its client has disconnected has a queue.
 */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** `{id}` is a placeholder for a session. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** Name of the body's schema. Absent if the request has no body. */
  readonly request?: string;
  /** An example of the body. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly answer: string;
  /** The success statuses, the usual one first. Default: only 200. */
  readonly statuses?: readonly number[];
  /** The queue of the operation. */
  readonly kind?: QuestionKind;
  /** Performs the operation with the parsed body. */
  handle(exchange: Exchange, body: never): Promise<unknown>;
  /** Returns the status of an answer; default: the usual one. */
  statusOf?(answer: never): number;
}

/** A question about the past: a GET. `ask` takes its parsed parameters. */
export interface ContractQuestion {
  /** `{id}` is one of the parameters. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly parameters: z.ZodObject;
  /** An example of the parameters. */
  readonly example: Readonly<Record<string, unknown>>;
  /** Name of the answer's schema. Null for plain text, or for the lines of a file. */
  readonly answer: string | null;
  /** The media type of a file, whose lines are compressed and streamed. */
  readonly media?: string;
  /** The cost of the question. Default: `short`. */
  readonly kind?: QuestionKind;
  /**
   * Whether the parameter `tx` always hides later transactions. Otherwise it does so only without
   * `at` and `valid_time`.
   */
  readonly pins?: true;
  ask(asked: AskedPast, parameters: never, signal: AbortSignal): Promise<unknown>;
}

/** A request to follow a session, which exists and is visible here. */
export interface FollowRequest {
  readonly session: SessionId;
  readonly store: ObjectStore;
  readonly paths: DisplayPaths;
  /** The transaction up to which the client knows the session; default: the newest. */
  readonly after: number | undefined;
}

/** The streams of one server. */
export interface EventStreams {
  /** Answers with a stream of events until the client disconnects or `close` is called. */
  follow(asked: FollowRequest, response: ServerResponse): Promise<void>;
  /** Ends every stream. */
  close(): void;
}

/** Server-sent events about a session, for clients that may resume after a transaction: a GET. */
export interface ContractEvents {
  readonly path: `/v1/sessions/{id}/${string}`;
  readonly summary: string;
  open(log: Logger): EventStreams;
}

/** The reason for rejecting a request before it is read. */
export interface Refusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/** Requests that one part of the server answers. */
export interface ServedPaths {
  /** Whether a request is for this part. */
  owns(request: Pick<IncomingMessage, 'url'>): boolean;
  /** Answers a request that the common checks rejected. */
  refuse(response: ServerResponse, refusal: Refusal): void;
  /** Answers a request; never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** A page for people, which needs no token of the server. Its visitors may ask questions. */
export interface ServedPage extends ServedPaths {
  /** Returns the address of a view of the page, which works while the server runs. */
  link(origin: string, view?: string): string;
  /**
   * Whether an admitted visitor sends this request. Such a request needs no token of the server.
   */
  admits(request: Pick<IncomingMessage, 'method' | 'headers' | 'url'>): boolean;
}

/** The objects that a contract keeps open between requests. */
export interface Held {
  /** Closes objects that were idle for this long. */
  forgetIdle(idleMs: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * The HTTP interface of a contract, which serves another program or a person. Its ids, paths and
 * schema names are unique among all contracts.
 */
export interface HttpContract {
  /** The schemas of request bodies. */
  readonly requests?: Schemas;
  /** The schemas of answers. */
  readonly answers?: Schemas;
  /** Operations by their OpenAPI ids. */
  readonly operations?: Readonly<Record<string, Operation>>;
  /** Questions by their OpenAPI ids. */
  readonly questions?: Readonly<Record<string, ContractQuestion>>;
  /** Streams of events by their OpenAPI ids. */
  readonly events?: Readonly<Record<string, ContractEvents>>;
  /** Optional members that the contract adds to a problem. */
  readonly problem?: Schemas;
  /** Creates the holder of its open objects, once for each server. */
  hold?(backend: Backend, settings: ServerSettings): Held;
  /** Returns its page. `token` is the server's own token; undefined if there is none. */
  page?(token: string | undefined, dataDir: string): ServedPage;
  /** Returns the status of an error of the contract; undefined for any other error. */
  statusOf?(error: unknown): ErrorStatus | undefined;
}

/**
 * Returns the constructors of a contract's operations and questions. They check that a handler fits
 * the schemas that its entry names.
 */
export function contractEntries<R extends Schemas, A extends Schemas>(_schemas: {
  readonly requests: R;
  readonly answers: A;
}) {
  type Declared<N, Q> = Omit<Operation, 'request' | 'answer' | 'handle' | 'statusOf'> & {
    readonly request?: Q;
    readonly answer: N;
  };
  return {
    operation: <N extends keyof A & string, Q extends keyof R & string = never>(
      entry: Declared<N, Q> & {
        handle(exchange: Exchange, body: z.output<R[Q]>): Promise<z.input<A[N]>>;
        statusOf?(answer: z.input<A[N]>): number;
      },
    ) => entry,
    question: <N extends keyof A & string, P extends z.ZodObject>(
      entry: Omit<ContractQuestion, 'parameters' | 'answer' | 'ask'> & {
        readonly parameters: P;
        readonly answer: N;
        ask(asked: AskedPast, parameters: z.output<P>, signal: AbortSignal): Promise<z.input<A[N]>>;
      },
    ) => entry,
    /** A question whose answer is plain text or, with `media`, the lines of a file. */
    plainQuestion: <T extends string | AsyncIterable<string>, P extends z.ZodObject>(
      entry: Omit<ContractQuestion, 'parameters' | 'answer' | 'ask'> & {
        readonly parameters: P;
        ask(asked: AskedPast, parameters: z.output<P>): Promise<T>;
      },
    ) => ({ ...entry, answer: null }),
  };
}
