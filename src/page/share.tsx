import { useState } from 'preact/hooks';
import { AnswerBox } from './answer-box.js';
import { fileAt } from './ask.js';
import { useQuestion, useSessionStrip } from './calls.js';
import { command, maskedExport } from './command.js';
import { place } from './place.js';
import { oneLine } from './shown-text.js';
import { CopyButton, saveAs } from './text-view.js';
import { SearchHits } from './views/search-hits.js';
import type { Redaction } from './wire.js';
import { counted, plural } from './words.js';

type Doing =
  | { readonly at: 'nothing' }
  | { readonly at: 'writing' }
  | { readonly at: 'written'; readonly name: string; readonly bytes: number }
  | { readonly at: 'refused'; readonly why: string };

/** A kind of file that the server writes. */
const FILES = {
  page: { ending: 'html', unpacks: true },
  bundle: { ending: 'bundle', unpacks: false },
} as const;

interface DownloadProps {
  readonly kind: keyof typeof FILES;
  readonly label: string;
  /** Mask rules besides the session's own. Undefined for a file without a mask. */
  readonly rules?: string | undefined;
}

/** Downloads a session as a file, and shows the file's size. */
function Download({ kind, label, rules }: DownloadProps) {
  const { session = '' } = place.value.of;
  const [doing, setDoing] = useState<Doing>({ at: 'nothing' });
  const { ending, unpacks } = FILES[kind];
  const name = `${session}${rules === undefined ? '' : '-redacted'}.${ending}`;
  const save = async (): Promise<void> => {
    setDoing({ at: 'writing' });
    try {
      const asked = rules === undefined ? {} : { redact: 'true', rules };
      const content = await fileAt(`/v1/sessions/${encodeURIComponent(session)}/${kind}`, asked, { unpacks });
      saveAs(content, name);
      setDoing({ at: 'written', name, bytes: content.size });
    } catch (error) {
      setDoing({ at: 'refused', why: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <>
      <button type="button" disabled={doing.at === 'writing'} onClick={() => void save()}>
        {doing.at === 'writing' ? 'Writing the file: keep this view open…' : label}
      </button>
      {doing.at === 'written' && (
        <p class="good" role="status">
          {oneLine(doing.name)} has {counted(Math.ceil(doing.bytes / 1_024))} KiB.
        </p>
      )}
      {doing.at === 'refused' && (
        <p class="bad" role="alert">
          {oneLine(doing.why, 500)}
        </p>
      )}
    </>
  );
}

function Command({ text }: { readonly text: string }) {
  return (
    <p class="soft">
      Or <code class="command">{text}</code> <CopyButton text={() => text} label="Copy the command" />
    </p>
  );
}

/** Shows each text that a redacted file hides. */
function Preview({ rules }: { readonly rules: string }) {
  const { session } = place.value.of;
  const strip = useSessionStrip();
  const answer = useQuestion<Redaction>('/v1/redaction', { session, rules });
  return (
    <section aria-label="What is masked">
      <AnswerBox answer={answer}>
        {({ hits, texts, matches }) => (
          <>
            <p role="status">
              {matches === 0
                ? `Nothing is masked in ${plural(texts, 'text')}. Name more texts above.`
                : `Of ${plural(texts, 'text')}, ${counted(matches)} lose the marked parts.`}
              {hits.length < matches && ` These are the first ${counted(hits.length)}.`}
            </p>
            <SearchHits hits={hits} strip={strip.state === 'there' ? strip.value : undefined} />
          </>
        )}
      </AnswerBox>
    </section>
  );
}

/** Shares a session without secrets: a field for more texts to mask, the files, and a preview. */
function Redacted() {
  const { session = '' } = place.value.of;
  const [typed, setTyped] = useState('');
  const [rules, setRules] = useState('');
  const isShown = rules === typed;
  return (
    <section class="card" aria-label="Without secrets">
      <h3>Without secrets</h3>
      <p class="soft">
        Keys, tokens and passwords of known forms are masked, and the texts that you name here. Names of people, their
        home folders, hosts and mail addresses are <strong>not</strong> masked by themselves: name them here.
      </p>
      <label>
        More texts to mask, one per line; write a /pattern/ between slashes
        <textarea rows={2} value={typed} maxLength={4_000} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <div class="row share-row">
        {isShown ? (
          <>
            <Download kind="page" label="Download the page without secrets" rules={rules} />
            <Download kind="bundle" label="Download the bundle without secrets" rules={rules} />
          </>
        ) : (
          <button type="button" class="first" onClick={() => setRules(typed)}>
            Show what is masked
          </button>
        )}
      </div>
      {isShown ? (
        <Command text={maskedExport(session, rules)} />
      ) : (
        <p class="soft">The command follows once you have looked at what is masked.</p>
      )}
      {isShown && <Preview key={rules} rules={rules} />}
    </section>
  );
}

/** Shares a session: as a page, as a bundle, or without secrets. */
export function Share() {
  const { session = '' } = place.value.of;
  return (
    <section aria-label="Share">
      <h2>Give it to a colleague</h2>
      <div class="cards">
        <div class="card">
          <h3>A page</h3>
          <p class="soft">One file that opens without a server. It has every text of this session, and no other.</p>
          <Download kind="page" label="Download the page" />
          <Command text={command('export', session, '--html', `${session}.html`)} />
        </div>
        <div class="card">
          <h3>A bundle for another database</h3>
          <p class="soft">
            <code>palimpsest import</code> reads it. Then every view works there.
          </p>
          <Download kind="bundle" label="Download the bundle" />
          <Command text={command('export', session, `${session}.bundle`)} />
        </div>
      </div>
      <Redacted />
    </section>
  );
}
