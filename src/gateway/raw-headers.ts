/** Header names and values alternating, in the order and case in which they arrived. */
export type RawHeaders = readonly string[];

/** Headers that apply to one connection only (RFC 9110, 7.6.1), so they are not forwarded. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Returns raw headers as pairs of name and value. */
export function pairsOf(raw: RawHeaders): readonly (readonly [name: string, value: string])[] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i] as string, raw[i + 1] as string]);
  return pairs;
}

/** Returns the value of the first header with a name. `name` is in lower case. */
export function headerOf(raw: RawHeaders, name: string): string | undefined {
  return pairsOf(raw).find(([one]) => one.toLowerCase() === name)?.[1];
}

/**
 * Returns the Transfer-Encoding of a body, such as `gzip, chunked`. Node decodes `chunked` and
 * leaves the other codings in the body.
 */
export function transferOf(raw: RawHeaders): string | undefined {
  const values = pairsOf(raw).flatMap(([name, value]) => (name.toLowerCase() === 'transfer-encoding' ? [value] : []));
  return values.length === 0 ? undefined : values.join(', ');
}

/**
 * Returns the codings of a body, such as `gzip`, from Content-Encoding and Transfer-Encoding. They
 * are in the order in which the sender applied them.
 */
export function codingsOf(raw: RawHeaders): string | undefined {
  const names = [headerOf(raw, 'content-encoding'), transferOf(raw)].flatMap((value) => value?.split(',') ?? []);
  const codings = names.map((name) => name.trim()).filter((name) => name !== '' && !/^chunked$/i.test(name));
  return codings.length === 0 ? undefined : codings.join(', ');
}

/** Returns the names of the headers that Connection lists as belonging to one connection. */
function namedByConnection(raw: RawHeaders): ReadonlySet<string> {
  const values = pairsOf(raw).flatMap(([name, value]) => (name.toLowerCase() === 'connection' ? value.split(',') : []));
  const named = new Set(values.map((value) => value.trim().toLowerCase()));
  // Content-Length is never dropped: without it, a body would be read as the next request.
  named.delete('content-length');
  return named;
}

/**
 * Returns the headers to forward: all except those of one connection, unchanged and in order. With
 * `host`, the Host header gets that value in its place. With `keepsUpgrade`, Connection and Upgrade
 * stay, because they open a WebSocket.
 */
export function forwardedHeaders(
  raw: RawHeaders,
  { host, keepsUpgrade = false }: { readonly host?: string; readonly keepsUpgrade?: boolean } = {},
): string[] {
  const named = namedByConnection(raw);
  return pairsOf(raw).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === 'host' && host !== undefined) return [name, host];
    if (keepsUpgrade && (lower === 'connection' || lower === 'upgrade')) return [name, value];
    return HOP_BY_HOP.has(lower) || named.has(lower) ? [] : [name, value];
  });
}

/** Returns the headers for a changed body, which is sent whole and without an encoding. */
export function headersFor(raw: RawHeaders, body: Buffer): RawHeaders {
  const kept = pairsOf(raw).filter(
    ([name]) => !/^(?:content-length|content-encoding|transfer-encoding|content-md5|digest)$/i.test(name),
  );
  return [...kept.flat(), 'Content-Length', String(body.length)];
}

/**
 * The headers that the log keeps. They name the session, the agent and the protocol. All other
 * headers may contain credentials, so they are not logged.
 */
const LOGGED: ReadonlySet<string> = new Set([
  'anthropic-beta',
  'anthropic-version',
  'content-encoding',
  'conversation_id',
  'openai-beta',
  'originator',
  'session-id',
  'session_id',
  'thread-id',
  'user-agent',
  'x-app',
  'x-claude-code-agent-id',
  'x-claude-code-agent-type',
  'x-claude-code-auxiliary-type',
  'x-claude-code-parent-agent-id',
  'x-claude-code-prompt-id',
  'x-claude-code-request-class',
  'x-claude-code-session-id',
  'x-codex-parent-thread-id',
  'x-codex-turn-metadata',
  'x-openai-subagent',
]);

const LONGEST_LOGGED = 4_096;

/** Returns the headers of a request that the log keeps, by their names in lower case. */
export function loggedHeaders(raw: RawHeaders): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairsOf(raw).flatMap(([name, value]) => {
      const lower = name.toLowerCase();
      return LOGGED.has(lower) ? [[lower, value.slice(0, LONGEST_LOGGED).toWellFormed()]] : [];
    }),
  );
}

/** Query parameters that the log keeps. Gemini's `key` is a credential, so it is not listed. */
const LOGGED_PARAMETERS: ReadonlySet<string> = new Set(['alt', 'api-version', 'beta']);

/**
 * The form of a parameter that the log may keep. Any other character could hide a second parameter
 * in the value.
 */
const PLAIN_PARAMETER = /^([\w-]+)=[\w.,-]{0,100}$/;

/** Returns the path of a request for the log, with only the parameters that the log keeps. */
export function loggedPath(path: string): string {
  const { bare, parameters } = partsOf(path);
  const kept = parameters.filter((pair) => LOGGED_PARAMETERS.has(PLAIN_PARAMETER.exec(pair)?.[1] ?? ''));
  return (kept.length === 0 ? bare : `${bare}?${kept.join('&')}`).toWellFormed();
}

function partsOf(path: string): { readonly bare: string; readonly parameters: readonly string[] } {
  const [bare = ''] = path.split(/[?#]/, 1);
  return { bare, parameters: path.slice(bare.length).split(/[?#&;]/) };
}

/** Names of headers whose values are credentials. */
const CREDENTIAL = /auth|cookie|credential|key|secret|token/;
/** Minimum length of a credential. A shorter word of a header, such as `Bearer`, is ordinary. */
const LEAST_CREDENTIAL = 8;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Returns a function that removes the credentials of a request from a text. Some providers repeat a
 * rejected key in their error.
 */
export function withoutCredentials(raw: RawHeaders, path: string): (text: string) => string {
  const headers = pairsOf(raw).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    return CREDENTIAL.test(lower) && !LOGGED.has(lower) ? value.split(/[\s;,=]+/) : [];
  });
  const parameters = partsOf(path).parameters.flatMap((pair) => {
    const [name = '', value = ''] = pair.split(/=(.*)/s, 2);
    return LOGGED_PARAMETERS.has(name) ? [] : [value, decoded(value)];
  });
  const secrets = [...headers, ...parameters].filter(({ length }) => length >= LEAST_CREDENTIAL);
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((rest, secret) => rest.replaceAll(secret, '[credential]'), text);
}
