/** A name or path in a listing: as it is, or JSON-quoted where it could forge a line or hide something (decision E3). Spaces alone are left. */
export function shownName(name: string): string {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^\s|\s$|^"/u.test(name) ? JSON.stringify(name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped) : name;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('');
}
