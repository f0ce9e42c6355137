/** Returns a generator of random numbers from 0 to 1. The same seed gives the same numbers. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 4_294_967_296;
  };
}

const ONSETS = 'b,br,c,ch,d,dr,f,fr,g,gr,h,k,l,m,n,p,pl,qu,r,s,sch,st,t,tr,v,w,x,z'.split(',');
const ENDS = ['a', 'e', 'i', 'o', 'u', 'al', 'en', 'is', 'or', 'um'];
const SYLLABLES = ONSETS.flatMap((onset) => ENDS.map((end) => onset + end));
const WORDS = 40_000;

/**
 * Returns a generator of code-like texts: identifiers of common and rare words, calls, comments,
 * data and numbers. Each call returns a new text of about `size` characters.
 */
export function codeWriter(seed: number): (size: number) => string {
  const random = seeded(seed);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const words = Array.from({ length: WORDS }, () =>
    Array.from({ length: 1 + Math.floor(random() * 3.5) }, () => pick(SYLLABLES)).join(''),
  );
  const word = (): string => words[Math.floor(WORDS * random() ** 3)] as string;
  const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
  const name = (): string => word() + (random() < 0.6 ? capital(word()) : '') + (random() < 0.2 ? capital(word()) : '');
  const hex = (): string => Math.floor(random() * 2 ** 48).toString(16);
  const lines: readonly (() => string)[] = [
    () => `import { ${name()}, ${name()} } from './${word()}/${word()}.js';`,
    () => `  const ${name()} = await this.${name()}(${name()}, ${Math.floor(random() * 1e4)});`,
    () => `export function ${name()}(${name()}: ${capital(name())}): Promise<${capital(name())}> {`,
    () => `    if (${name()}.${name()} === undefined || ${name()} > ${Math.floor(random() * 99)}) return ${name()};`,
    () => `  // ${capital(word())} ${word()} ${word()} the ${word()} of ${word()}, ${word()} and ${word()}.`,
    () => `  "${name()}": "${hex()}${hex()}", // ${Math.floor(random() * 1e6)}`,
    () => `error[E${hex().slice(0, 3)}]: ${word()} ${word()} at ${word()}/${name()}.ts:${hex().length}`,
    () => `    expect(${name()}(${name()})).toEqual([${Math.floor(random() * 100)}, '${word()} ${word()}']);`,
    () => '}',
    () => '',
  ];
  return (size) => {
    const text: string[] = [];
    for (let units = 0; units < size; ) {
      const line = pick(lines)();
      text.push(line);
      units += line.length + 1;
    }
    return text.join('\n');
  };
}

/** Returns the length of a text as agents read and write them: mostly short, some long. */
export const textSize = (random: () => number): number => 200 + Math.floor(40_000 * random() ** 3);
