/** A made-up secret of a kind, and the text around it. */
export interface MadeSecret {
  readonly kind: string;
  readonly secret: string;
}

const ALNUM = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const HEX = '0123456789abcdef';

/** Returns a source of texts that is the same for each seed. */
function texts(seed: number): (alphabet: string, length: number) => string {
  let state = seed * 2_654_435_761 + 1;
  return (alphabet, length) =>
    Array.from({ length }, (_, i) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      // Each text has a digit and a letter of either case, as real tokens have.
      const forced = [alphabet.search(/\d/), alphabet.search(/[a-z]/), alphabet.search(/[A-Z]/)][i % 9] ?? -1;
      return alphabet[forced >= 0 && i < 27 ? forced + (state % 2) : state % alphabet.length];
    }).join('');
}

type Make = (text: (alphabet: string, length: number) => string) => string;

/** Kinds of secrets with a form of their own. */
const FORMS: Readonly<Record<string, Make>> = {
  'aws key id': (t) => `AKIA${t(UPPER, 16)}`,
  'github token': (t) => `ghp_${t(ALNUM, 36)}`,
  'github app token': (t) => `ghs_${t(ALNUM, 36)}`,
  'github fine-grained token': (t) => `github_pat_${t(ALNUM, 22)}_${t(ALNUM, 59)}`,
  'gitlab token': (t) => `glpat-${t(ALNUM, 20)}`,
  'slack bot token': (t) => `xoxb-${t('0123456789', 12)}-${t('0123456789', 12)}-${t(ALNUM, 24)}`,
  'slack app token': (t) => `xapp-1-${t(ALNUM, 11)}-${t('0123456789', 13)}-${t(HEX, 64)}`,
  'stripe key': (t) => `sk_live_${t(ALNUM, 24)}`,
  'stripe hook secret': (t) => `whsec_${t(ALNUM, 32)}`,
  'openai key': (t) => `sk-proj-${t(ALNUM, 48)}`,
  'anthropic key': (t) => `sk-ant-api03-${t(ALNUM, 93)}AA`,
  'google key': (t) => `AIza${t(ALNUM, 35)}`,
  'google secret': (t) => `GOCSPX-${t(ALNUM, 28)}`,
  'npm token': (t) => `npm_${t(ALNUM, 36)}`,
  'pypi token': (t) => `pypi-AgEIcHlwaS5vcmc${t(ALNUM, 70)}`,
  'hugging face token': (t) => `hf_${t(ALNUM, 34)}`,
  'groq key': (t) => `gsk_${t(ALNUM, 52)}`,
  'replicate token': (t) => `r8_${t(ALNUM, 37)}`,
  'sendgrid key': (t) => `SG.${t(ALNUM, 22)}.${t(ALNUM, 43)}`,
  'twilio key': (t) => `SK${t(HEX, 32)}`,
  'telegram token': (t) => `${t('0123456789', 9)}:AA${t(ALNUM, 33)}`,
  'digital ocean token': (t) => `dop_v1_${t(HEX, 64)}`,
  'databricks token': (t) => `dapi${t(HEX, 32)}`,
  'shopify token': (t) => `shpat_${t(HEX, 32)}`,
  'linear key': (t) => `lin_api_${t(ALNUM, 40)}`,
  'notion token': (t) => `ntn_${t(ALNUM, 46)}`,
  'figma token': (t) => `figd_${t(ALNUM, 40)}`,
  'vault token': (t) => `hvs.${t(ALNUM, 90)}`,
  'grafana token': (t) => `glsa_${t(ALNUM, 32)}_${t(HEX, 8)}`,
  'doppler token': (t) => `dp.pt.${t(ALNUM, 43)}`,
  'json web token': (t) => `eyJ${t(ALNUM, 33)}.eyJ${t(ALNUM, 60)}.${t(ALNUM, 43)}`,
  'bcrypt hash': (t) => `$2b$12$${t(ALNUM, 53)}`,
};

/** Kinds of secrets that only the text around them names. `%` is the secret. */
const NAMED: Readonly<Record<string, readonly [around: string, make: Make]>> = {
  'password of a list': ['{"name": "DB_PASSWORD", "value": "%"}', (t) => t(ALNUM, 16)],
  'yaml block': ['client_secret: |\n  %\nnext: 1', (t) => t(ALNUM, 40)],
  'environment variable': ['export SERVICE_API_KEY=%', (t) => t(ALNUM, 32)],
  'command line': ['mysql --host db --password %', (t) => t(ALNUM, 18)],
  address: ['postgres://app:%@db.example/app', (t) => t(ALNUM, 20)],
  netrc: ['machine api.example login bot password %', (t) => t(ALNUM, 20)],
  header: ['Authorization: Bearer %', (t) => t(ALNUM, 40)],
  'private key': [
    '-----BEGIN RSA PRIVATE KEY-----\n%\n-----END RSA PRIVATE KEY-----',
    (t) => [t(ALNUM, 64), t(ALNUM, 64), t(ALNUM, 40)].join('\n'),
  ],
};

/** Texts in which a secret with its own form may stand. */
const PLACES = ['const key = "%";', 'key: %\n', 'curl https://api.example/?t=% -o out', '[%]', '# see %'];

/** A made-up secret in a text. */
export interface SeededText extends MadeSecret {
  readonly text: string;
}

/** Returns 200 secrets of 40 kinds, each in a text. */
export function seededTexts(): readonly SeededText[] {
  const forms = Object.entries(FORMS).flatMap(([kind, make], k) =>
    PLACES.map((place, i) => {
      const secret = make(texts(k * 31 + i + 1));
      return { kind, secret, text: place.replace('%', () => secret) };
    }),
  );
  const named = Object.entries(NAMED).flatMap(([kind, [around, make]], k) =>
    Array.from({ length: 5 }, (_, i) => {
      const secret = make(texts(k * 37 + i + 5_000));
      return { kind, secret, text: around.replace('%', () => secret) };
    }),
  );
  return [...forms, ...named];
}
