import type { EdnSymbol, EdnValue } from '../../edn/values.js';
import { ownMember } from '../../values/own-member.js';
import type { ParsedQuery } from './parse-query.js';
import { constantsOf, isVariable, symbolNames, tripleOf } from './query-terms.js';
import { attributeAsked, SSOT_ATTRIBUTES } from './ssot-attributes.js';

/** A triple on the top level of a query. */
interface TopTriple {
  readonly e: EdnValue;
  readonly a: string;
  readonly v: EdnValue | undefined;
}

/** What is null of a file that was only mentioned. */
const NULL_WHERE_UNREAD: ReadonlySet<string> = new Set(['content_hash', 'file_hash']);
/** What files alone have. */
const OF_FILES: ReadonlySet<string> = new Set(['file_type', 'char_count']);

const isNamed = (term: EdnValue | undefined, name: string): boolean => isVariable(term) && term.name === name;

/** Where the variables of a query stand on its top level, and so what gives them their values. */
export class VariablePlaces {
  readonly #triples: readonly TopTriple[];
  readonly #given: ReadonlySet<string>;

  constructor({ where, in: bindings = [] }: ParsedQuery) {
    this.#given = new Set(symbolNames(bindings));
    this.#triples = where.flatMap((clause) => {
      const found = tripleOf(clause);
      return found === undefined ? [] : [{ ...found, a: attributeAsked(found.a) }];
    });
  }

  /** Whether more than one clause or argument gives a variable its values, those aside that are looked up of a member. */
  isBoundTwice({ name }: EdnSymbol): boolean {
    const isEntity = this.#triples.some(({ e }) => isNamed(e, name));
    const values = this.#triples.filter(({ v }) => isNamed(v, name)).length;
    return this.#given.has(name) || values > 1 || (isEntity && !this.isMember({ name }));
  }

  /**
   * Whether a variable is a member of a list and its own attributes are looked up of each: of a list that heads keep as one value always, of a folded one where no
   * constant says which members are meant.
   */
  isMember({ name }: Pick<EdnSymbol, 'name'>): boolean {
    if (this.#given.has(name)) return false;
    const [list, ...others] = this.#triples.filter(({ v }) => isNamed(v, name));
    if (list === undefined || others.length > 0 || !isVariable(list.e) || list.e.name === name) return false;
    const kept = ownMember(SSOT_ATTRIBUTES, list.a);
    if (kept === 'list') return true;
    return kept === 'folded' && this.#triples.every(({ e, v }) => !isNamed(e, name) || constantsOf(v) === undefined);
  }

  /**
   * Whether a clause joins files with something else by a hash that is null for every file that was only mentioned: taken first, each of them would be compared with
   * everything that has none.
   */
  isJoinedFile({ name }: EdnSymbol, attribute: string, v: EdnValue | undefined): boolean {
    if (!NULL_WHERE_UNREAD.has(attribute) || !isVariable(v) || !this.isBoundTwice(v)) return false;
    return this.#triples.some(
      ({ e, a, v: value }) =>
        isNamed(e, name) && (OF_FILES.has(a) || (a === 'type' && constantsOf(value)?.join() === 'file')),
    );
  }
}
