import { isAbsolute } from 'node:path';
import { NodeError } from './errors.js';

/** One server of a database. */
export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

/** A PostgreSQL database from a URL, without its password. */
export interface DatabaseUrl {
  readonly hosts: readonly DatabaseHost[];
  readonly name: string;
  readonly user: string;
  /** Parameters of the driver, such as `sslmode`. */
  readonly parameters: Readonly<Record<string, string>>;
}

const FORM = 'postgresql://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?sslmode=verify-full&sslrootcert=/path/root.crt]';
const DEFAULT_PORT = 5432;

/** Permitted driver parameters, with libpq's names for those that are files. */
const PARAMETERS: ReadonlySet<string> = new Set([
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslNegotiation',
  'channelBinding',
  'gssEncMode',
  'targetServerType',
  'hostRecheckSeconds',
  'currentSchema',
  'ApplicationName',
]);
const FILES: ReadonlySet<string> = new Set(['sslrootcert', 'sslcert', 'sslkey']);
const SSL_MODES: ReadonlySet<string> = new Set(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']);

// Messages omit the URL: the faulty part may be the beginning of its password.
function refuse(why: string): never {
  throw new NodeError('log-unfit', `The address of the database must look like ${FORM}; ${why}.`);
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse(`${what} has a % that is not an escape (a % itself is %25)`);
  }
}

function hostOf(text: string): DatabaseHost {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.%]+)\]|([^[\]:@/?#\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) return refuse('a host in it is invalid');
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  if (number < 1 || number > 65_535) return refuse(`the port ${number} is not between 1 and 65535`);
  return { host, port: number };
}

function parametersOf(query: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(query)) {
    if (/pass|pwd|secret/i.test(key))
      refuse('a password belongs in a file (--password-file) or in PALIMPSEST_DATABASE_PASSWORD');
    if (!PARAMETERS.has(key))
      refuse(`it has the parameter ${JSON.stringify(key)}; these may be set: ${[...PARAMETERS].join(', ')}`);
    if (key === 'sslmode' && !SSL_MODES.has(value)) refuse(`sslmode is one of ${[...SSL_MODES].join(', ')}`);
    if (FILES.has(key) && !isAbsolute(value)) refuse(`${key} must be an absolute path`);
    found[key] = value;
  }
  return found;
}

/**
 * The content of a PostgreSQL URL: the database, and the password. Only the node gets the password.
 */
export interface ParsedDatabaseUrl {
  readonly database: DatabaseUrl;
  readonly password: string | undefined;
}

/**
 * Parses the URL of a database in libpq's format.
 * @throws {NodeError} `log-unfit` – the URL is invalid; the message never repeats it
 */
export function parseDatabaseUrl(text: string): ParsedDatabaseUrl {
  const [, authority, path = '', query = ''] =
    /^postgres(?:ql)?:\/\/([^/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/.exec(text) ?? [];
  if (authority === undefined) return refuse('it does not');
  const at = authority.lastIndexOf('@');
  if (at < 1) return refuse('it names no user');
  const [, user = '', password] = /^([^:]*)(?::(.*))?$/s.exec(authority.slice(0, at)) ?? [];
  if (user === '') return refuse('it names no user');
  if (path === '') return refuse('it names no database');
  return {
    database: {
      hosts: authority
        .slice(at + 1)
        .split(',')
        .map(hostOf),
      name: decoded(path, 'the name of the database'),
      user: decoded(user, 'the user'),
      parameters: parametersOf(query),
    },
    password: password === undefined || password === '' ? undefined : decoded(password, 'the password'),
  };
}
