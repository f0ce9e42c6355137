import { MASK } from './mark.js';

/** Letters and digits. */
const A = '[A-Za-z0-9]';
const UUID = '[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}';

/**
 * Tokens whose issuer defines their form, mostly by a prefix. No letter or digit precedes a token.
 */
const TOKENS: readonly string[] = [
  // Code hosts and build services.
  'gh[a-z]_\\w{16,}',
  'github_pat_\\w{16,}',
  'gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat)-[\\w.-]{16,}',
  'AT(?:ATT3|BB|CTT3)[\\w=-]{20,}',
  `bkua_[0-9a-f]{40}`,
  'CCIPAT_\\w{20,}',
  `sgp_\\w{20,}`,
  // Package registries.
  `npm_${A}{30,}`,
  'pypi-[\\w-]{50,}',
  'rubygems_[0-9a-f]{40,}',
  `CLOJARS_${A}{50,}`,
  'dckr_[op]at_[\\w-]{20,}',
  `oy2[a-z0-9]{43}`,
  `AKCp${A}{60,}`,
  // Clouds and hosts.
  '(?:A3T[A-Z0-9]|A(?:BI|CC|GP|ID|IP|KI|NP|NV|RO|SI)A)[A-Z0-9]{16}(?![A-Za-z0-9])',
  'ABSK[A-Za-z0-9+/]{80,}={0,2}',
  'AIza[\\w-]{30,}',
  'GOCSPX-[\\w-]{20,}',
  'ya29\\.[\\w-]{20,}',
  '1//0[\\w-]{40,}',
  '[\\w~.-]{3}\\dQ~[\\w~.-]{31,34}',
  `${A}{76}AZDO${A}{4}`,
  `LTAI${A}{12,}`,
  `AKID${A}{28,}`,
  'y[0-6]_[\\w-]{50,}',
  'do[opr]_v1_[0-9a-f]{60,}',
  'HRKU-[\\w-]{30,}',
  'fm[12]_[\\w+/=,-]{40,}',
  `nfp_${A}{30,}`,
  `vc[aikpr]_${A}{24,}`,
  `rnd_${A}{24,}`,
  'sb(?:p|_secret)_\\w{20,}',
  'pscale_(?:oauth|pw|tkn)_[\\w.=-]{30,}',
  `napi_${A}{40,}`,
  'dapi[0-9a-f]{32}',
  'mdb_sa_sk_[\\w-]{30,}',
  'v1\\.0-[0-9a-f]{24}-[0-9a-f]{100,}',
  'dt0[a-z]\\d{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{60,}',
  'tskey-[\\w-]{16,}',
  // Secret managers.
  'hv[brs]\\.[\\w-]{20,}',
  `${A}{14}\\.atlasv1\\.[\\w=-]{40,}`,
  `dp\\.(?:audit|ct|pt|sa|scim|st)\\.(?:[\\w-]{1,40}\\.)?${A}{30,}`,
  'pul-[0-9a-f]{40}',
  'ops_eyJ[\\w+/=-]{40,}',
  'AGE-SECRET-KEY-1[A-Z0-9]{40,}',
  // Model providers.
  'sk-[\\w-]{16,}',
  `gsk_${A}{30,}`,
  `r8_${A}{30,}`,
  `pplx-${A}{30,}`,
  `xai-${A}{40,}`,
  `(?:hf|api_org)_${A}{30,}`,
  'nvapi-[\\w-]{40,}',
  'tgp_v1_[\\w-]{30,}',
  'lsv2_(?:pt|sk)_[0-9a-f_]{32,}',
  `csk-${A}{30,}`,
  `jina_${A}{40,}`,
  'tvly-[\\w-]{20,}',
  'pcsk_\\w{40,}',
  // Payment services.
  '(?:[rs]k_(?:live|test)|whsec)_\\w{8,}',
  'sq0[a-z]{3}-[\\w-]{20,}',
  `access_token\\$(?:production|sandbox)\\$\\w{8,64}\\$\\w{16,}`,
  'shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}',
  'FLWSECK(?:_TEST)?-\\w{12,}',
  'shippo_(?:live|test)_[0-9a-f]{40}',
  'duffel_(?:live|test)_[\\w-]{40,}',
  `EZ[AT]K${A}{50,}`,
  `access-(?:development|production|sandbox)-${UUID}`,
  // Mail and messaging.
  'SG\\.[\\w-]{16,}\\.[\\w-]{16,}',
  'key-[0-9a-f]{32}(?![0-9a-f])',
  '[0-9a-f]{32}-us\\d{1,2}(?![\\w-])',
  'xkeysib-[0-9a-f]{60,}-\\w{16}',
  'xox[a-z](?:\\.xox[a-z])?-[\\w-]{8,}',
  'xapp-\\d-[\\w-]{8,}',
  'SK[0-9a-f]{32}(?![0-9a-f])',
  '\\d{8,10}:AA[\\w-]{32,35}(?![\\w-])',
  '[MNO][\\w-]{23,27}\\.[\\w-]{6}\\.[\\w-]{27,40}',
  // Issue trackers and documents.
  `lin_(?:api|oauth)_${A}{30,}`,
  `(?:ntn|secret)_${A}{40,}`,
  'figd_[\\w-]{30,}',
  'pat[A-Za-z0-9]{14}\\.[0-9a-f]{60,}',
  `pat-(?:eu|na)\\d-${UUID}`,
  'sntry[su]_[\\w+/=]{40,}',
  `gl(?:sa_${A}{30,}_[0-9a-f]{8}|c_[A-Za-z0-9+/=]{32,})`,
  'NR(?:AA|AK|II|JS|RA)-[\\w-]{20,}',
  'PMAK-[0-9a-f]{24}-[0-9a-f]{30,}',
  'CFPAT-[\\w-]{40,}',
  `pnu_${A}{30,}`,
  'rdme_[a-z0-9]{50,}',
  'tfp_[\\w-]{40,}',
  `aio_${A}{28}`,
  `ico-${A}{32}`,
  `ph[cx]_${A}{40,}`,
  `(?:api|mob|sdk)-${UUID}`,
  '[st]k\\.eyJ[\\w-]{8,}\\.[\\w-]{8,}',
  `EAA${A}{80,}`,
  'AAAAAAAAAAAAAAAAAAAA[\\w%]{60,}',
  'sl\\.[\\w-]{100,}',
  // Password hashes, as in user files and tables.
  '\\$2[abxy]\\$\\d\\d\\$[./A-Za-z0-9]{53}',
  '\\$(?:[1567y]|argon2(?:id?|d))\\$[\\w./$=,+-]{20,}',
];

/**
 * Matches a JWT at a word boundary. Without the boundary, a long text would be scanned again from
 * each hyphen.
 */
const JWT = '(?<![\\w-])eyJ[\\w-]{8,}\\.[\\w-]{8,}\\.[\\w-]*';
/** The base64 form of the first line of a private key. */
const ENCODED_KEY =
  '(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BEU0EgUFJJVkFUR|BPUEVOU1NI|' +
  'BFTkNSWVBURUQg)[A-Za-z0-9+/=]*';

const KEY_BLOCK = '[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}';

/**
 * Forms of secrets with their replacements. `$1` and `$2` keep the text before and after the
 * secret. Each form matches in time linear in the length of the text.
 */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`-{4,5} ?BEGIN ${KEY_BLOCK}[\\s\\S]*?(?:-{4,5} ?END ${KEY_BLOCK}|$)`, 'g'), MASK],
  [/\bPuTTY-User-Key-File-\d[\s\S]*?(?:\bPrivate-MAC: ?[0-9a-f]*|$)/g, MASK],
  [new RegExp(`(?<![A-Za-z0-9])(?:${TOKENS.join('|')})|${JWT}|${ENCODED_KEY}`, 'g'), MASK],
  [/\bsecret:[\w./-]+/gi, MASK],
  [/\b(Bearer\s{1,8})[\w.~+/=-]{8,}/gi, `$1${MASK}`],
  [/\b(Authorization\W{1,8}Basic\s{1,8})[\w+/=-]{4,}/gi, `$1${MASK}`],
  [
    /\b(Authorization\\{0,7}["']?\s{0,4}[:=]\s{0,4}\\{0,7}["']?(?:[A-Za-z][\w-]{1,20}\s{1,4})?)(?=[^\s"'\\]{0,200}\d|[^\s"'\\]{20})[\w.~+/=:%-]{8,}/gi,
    `$1${MASK}`,
  ],
  [/\b((?:Set-)?Cookie2?\\{0,7}["']?\s{0,4}:\s{0,4}\\{0,7}["']?)[^\s=;"'\\]{1,256}=[^\r\n"'\\]+/gi, `$1${MASK}`],
  [/(\bsignature=|[?&;]sig=)[\w%+/=-]{20,}/gi, `$1${MASK}`],
  [/(\bhooks\.slack(?:-gov)?\.com\/[a-z]{1,20}\/)[\w/-]{16,}/g, `$1${MASK}`],
  [/(\bdiscord(?:app)?\.com\/api\/webhooks\/\d{1,24}\/)[\w-]{16,}/g, `$1${MASK}`],
  [/(\bwebhook\.office\.com\/webhookb2\/)[\w@/-]{16,}/g, `$1${MASK}`],
  [/(\/\/)[^\s/:@"'<>]{8,256}(:x-oauth-basic@)/g, `$1${MASK}$2`],
  // The password in an address: the text up to the last `@` of the address. A port is not a
  // password, and the text after the host is a path. Ends at the next address, which is matched on
  // its own.
  [
    /(:\/\/[^\s/:@[]{0,200}:)(?!\d{1,5}[/?#])(?:(?!:\/\/)[^\s"'<>@]){1,4096}(?:@(?:(?!:\/\/)[^\s"'<>@/?#]){0,256}){0,8}(@)/g,
    `$1${MASK}$2`,
  ],
  // Passwords in command lines, and in password files whose fields have positions instead of names.
  [
    /(\s(?:-u|--(?:proxy-)?user)[\s=]{1,4}\\{0,7}["']?[^\s:"'/\\-][^\s:"'/\\]{0,63}:)(?!\d{1,6}(?:[\s"'\\]|$))[^\s"'\\]{3,}/g,
    `$1${MASK}`,
  ],
  [/(\bmysql(?:admin|dump|import)?\s[^\n|;&]{0,200}?(?<=\s)-p)(?![\s"'])[^\s"']{3,}/g, `$1${MASK}`],
  [
    /(\b(?:docker|podman|oras|helm)\s(?:[a-z]{1,20}\s){0,2}login\s[^\n|;&]{0,200}?(?<=\s)-p\s{1,4})[^\s"']{3,}/g,
    `$1${MASK}`,
  ],
  [/(\bsshpass\s{1,4}-p\s{0,4})[^\s]{3,}/g, `$1${MASK}`],
  [/(\bredis-cli\s[^\n|;&]{0,200}?(?<=\s)-a\s{1,4})[^\s]{3,}/g, `$1${MASK}`],
  [/(-pass(?:in|out)?\s{1,4}["']?pass:)[^\s"']{3,}/g, `$1${MASK}`],
  [
    /(\b(?:login|machine)\s{1,64}\S{1,256}\s{1,64}(?:account\s{1,64}\S{1,256}\s{1,64})?password\s{1,64})[^\s"'\\]+/g,
    `$1${MASK}`,
  ],
  [/^([^:\s]{1,256}:(?:\d{4,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:)\S+$/gm, `$1${MASK}`],
  [/([;"']\s{0,2}pwd\s?=\s?)[^;"'\s]{2,}/gi, `$1${MASK}`],
  [
    /(\bidentified\s{1,8}(?:with\s{1,8}\S{1,64}\s{1,8})?by\s{1,8}(?:password\s{1,8})?\\{0,7}["'])[^"'\n]{1,256}/gi,
    `$1${MASK}`,
  ],
  [/(\b(?:with|encrypted|set)\s{1,8}password\s{1,8}\\{0,7}["'])[^"'\n]{1,256}/gi, `$1${MASK}`],
];

/**
 * User and password in base64, after the word `Basic` of a header or the field `auth` of a Docker
 * file. Other base64 text is not masked.
 */
const BASIC = /\b(Basic\s{1,8}|auth\\{0,7}["']\s{0,4}:\s{0,4}\\{0,7}["'])([\w+/-]{6,}={0,2})/gi;

const withoutBasic = (text: string): string =>
  text.replace(BASIC, (whole, word: string, said: string) =>
    /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(Buffer.from(said, 'base64').toString('latin1')) ? `${word}${MASK}` : whole,
  );

/** Masks secrets that are recognised by their form or by the text next to them. */
export function withoutForms(text: string): string {
  return withoutBasic(FORMS.reduce((left, [form, replacement]) => left.replace(form, replacement), text));
}

/**
 * Kinds of secrets by form. A mark includes the kind of its secret, so that a reader knows what was
 * hidden.
 */
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/PRIVATE KEY|^PuTTY|^LS0tLS1CRUdJTi/, 'private-key'],
  [/^(?:A3T|A(?:BI|CC|GP|ID|IP|KI|NP|NV|RO|SI)A)[A-Z0-9]{16}$/, 'aws-key'],
  [/^gh[a-z]_|^github_pat_/, 'github-token'],
  [/^gl[a-z]{2,6}-/, 'gitlab-token'],
  [/^sk-ant-/, 'anthropic-key'],
  [/^sk-/, 'openai-key'],
  [/^AIza/, 'google-key'],
  [/^xox|^xapp-/, 'slack-token'],
  [/^[rs]k_(?:live|test)_|^whsec_/, 'stripe-key'],
  [/^npm_/, 'npm-token'],
  [/^pypi-/, 'pypi-token'],
  [/^eyJ/, 'jwt'],
];

/** Returns the kind of a secret by its form. */
export const kindOfSecret = (secret: string): string => KINDS.find(([form]) => form.test(secret))?.[1] ?? 'secret';
