/** The addresses in a setting such as `XTDB_URL`, in its order and with the white space around them; a comma may stand in a path. */
export const addressesIn = (text: string): string[] => text.split(/,\s*(?=(?:https?|unix):)/i);
