/**
 * Splits a setting such as `XTDB_URL` into its addresses, in order and with surrounding white
 * space. A path may contain a comma.
 */
export const addressesIn = (text: string): string[] => text.split(/,\s*(?=(?:https?|unix):)/i);
