import { defined } from '../../../values/defined.js';
import { idAt, momentOf } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';

/** What every entry of an OpenHands event has, of either generation. */
export type Common = { session: string; place: string; at?: number; native_id?: string };

/** Session, place, clock and id of an event. */
export const eventCommon = (session: string, event: JsonObject, place: string): Common => ({
  session,
  place,
  ...defined({ at: momentOf(event.timestamp), native_id: idAt(event, 'id') }),
});
