import type { Json } from '../objects/canonical-json.js';
import { mapTexts } from '../objects/map-texts.js';
import { MASK } from './mark.js';
import { isMaskedValue } from './named-values.js';
import { withoutPublishedForms } from './published-rules.js';
import { withoutForms } from './secret-forms.js';
import { isSecretFlag, isSecretName, withoutNamedValues } from './secret-names.js';

/**
 * Masks secrets in a text: keys and tokens of known forms, private keys, and credentials in
 * headers, addresses and command lines. Also masks the values of secrets' names, including whole
 * lists, objects and YAML blocks. Format verbs such as `%v` stay.
 *
 * An unclosed value is masked to the end of its line or text, so that a truncated text reveals
 * nothing of it. Masking twice changes nothing. Mask a text before you truncate it, because half a
 * key is not recognised.
 */
export function withoutSecrets(text: string): string {
  return withoutNamedValues(withoutPublishedForms(withoutForms(text)), isMaskedValue);
}

/** Returns whether a value contains any text or number. */
function holdsAny(value: Json): boolean {
  if (Array.isArray(value)) return value.some(holdsAny);
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return typeof value === 'string' || typeof value === 'number';
}

const hidden = (value: Json): Json => (holdsAny(value) ? MASK : value);

type Members = Readonly<Record<string, Json>>;

/**
 * Returns the names of members whose values are secrets because of another member: `{"name":
 * "PASSWORD", "value": "…"}`, and the data of a Kubernetes Secret.
 */
export function secretMembers(members: Members): readonly string[] {
  const isNamed = ['name', 'Name', 'key', 'Key', 'variable'].some((one) => {
    const name = Object.hasOwn(members, one) ? members[one] : undefined;
    return typeof name === 'string' && isSecretName(name);
  });
  return [...(isNamed ? ['value', 'Value', 'val'] : []), ...(members.kind === 'Secret' ? ['data', 'stringData'] : [])];
}

/** Masks list elements. An element after a secret flag such as `--password` is a secret. */
function withoutListed(list: readonly Json[], hide: (value: Json) => Json): Json {
  return list.map((one, i) => {
    const before = list[i - 1];
    const isFlagged =
      typeof one === 'string' && !one.startsWith('-') && typeof before === 'string' && isSecretFlag(before);
    return isFlagged ? MASK : hide(one);
  });
}

/** Masks secrets in all texts of a JSON value, and all values of secrets' names. */
export function withoutSecretValues(value: Json): Json {
  const hide = (one: Json): Json => {
    if (Array.isArray(one)) return withoutListed(one, hide);
    if (typeof one !== 'object' || one === null) return one;
    const secret = secretMembers(one as Members);
    return Object.fromEntries(
      Object.entries(one).map(([key, held]) => [
        key,
        secret.includes(key) || isSecretName(key) ? hidden(held) : hide(held),
      ]),
    );
  };
  return mapTexts(hide(value), withoutSecrets);
}
