/** A provider's protocol whose requests the gateway records. */
export type Wire = 'anthropic' | 'responses' | 'chat' | 'gemini';

/**
 * The upstreams that the gateway knows, by the first segment of the path. `codex` is the Responses
 * API as Codex calls it; with a ChatGPT account, the same requests go to another host.
 * `code-assist` serves Gemini CLI with a Google account.
 */
export const UPSTREAMS: Readonly<Record<string, string>> = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com',
  codex: 'https://api.openai.com/v1',
  gemini: 'https://generativelanguage.googleapis.com',
  'code-assist': 'https://cloudcode-pa.googleapis.com',
};

/** The base address of `codex` for requests that name a ChatGPT account. */
const CHATGPT = new URL('https://chatgpt.com/backend-api/codex');

/** Where a request goes: the upstream, its address, and the path there with the query. */
export interface Target {
  readonly upstream: string;
  readonly base: URL;
  readonly path: string;
}

/**
 * Returns the target of a request by the first segment of its path. Undefined if it names no
 * upstream. The rest of the path and the query stay byte for byte; `URL` would rewrite parts of
 * them.
 */
export function targetOf(
  requested: string,
  bases: ReadonlyMap<string, URL>,
  { hasAccount }: { readonly hasAccount: boolean },
): Target | undefined {
  const [, upstream = '', rest = ''] = /^\/([^/?#]+)(.*)$/s.exec(requested) ?? [];
  const known = bases.get(upstream);
  if (known === undefined) return undefined;
  const isDefault = upstream === 'codex' && known.href === UPSTREAMS.codex;
  const base = isDefault && hasAccount ? CHATGPT : known;
  const path = `${base.pathname.replace(/\/$/, '')}${rest.startsWith('/') ? '' : '/'}${rest}`;
  return { upstream, base, path };
}

const FORMS: readonly (readonly [Wire, RegExp])[] = [
  ['anthropic', /\/v1\/messages$/],
  ['responses', /\/responses(?:\/compact)?$/],
  ['chat', /\/chat\/completions$/],
  ['gemini', /:(?:generateContent|streamGenerateContent)$/],
];

/**
 * Returns the wire of a model call. Undefined for every other request, such as a token count, a
 * batch or a list of models. Those are forwarded and not recorded.
 */
export function wireOf(method: string, path: string): Wire | undefined {
  if (method !== 'POST') return undefined;
  const [bare = ''] = path.split(/[?#]/, 1);
  return FORMS.find(([, form]) => form.test(bare))?.[0];
}
