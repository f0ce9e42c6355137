import { hashText } from '../../objects/hashes.js';
import { chatObjectId, type ObjectId, type SessionId } from '../../objects/ids.js';
import { abridge, isLargeText } from '../../objects/large-text.js';
import { toolcallVersion } from '../../objects/versions.js';
import type { SessionWrite } from '../delivery/session-write.js';
import type { CallReport } from './call-report.js';
import { wellFormed } from './well-formed.js';

/** The object of a call, and its whole output where `content` holds only head and tail of it (decisions B8, C6). */
export function storedCall(
  id: ObjectId,
  session: SessionId,
  report: CallReport,
  refs: readonly ObjectId[],
): NonNullable<SessionWrite['call']> {
  const text = report.content.toWellFormed();
  const large = isLargeText(text);
  const version = toolcallVersion({
    id,
    tool: report.tool,
    args: wellFormed(report.args) as CallReport['args'],
    ...(report.argsDisplay === undefined ? {} : { argsDisplay: report.argsDisplay.toWellFormed() }),
    status: report.status,
    chatRef: chatObjectId(session),
    fileRefs: refs,
    content: large ? abridge(text).content : text,
  });
  return large ? { version, wholeText: { hash: hashText(text), text } } : { version };
}
