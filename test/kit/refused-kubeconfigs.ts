/** What it is about, the kubeconfig, and reason and message of its refusal. */
export type RefusedKubeconfig = [title: string, text: () => string, reason: string, message: RegExp];

/**
 * Kubeconfigs of tenants that nobody may follow, with the reasons.
 * @param config makes one with these fields in its cluster and its user, and with more users
 * @param exec credential plugin that leaves a trace when somebody runs the plugin
 */
export const refusedKubeconfigs = (
  config: (cluster: object, user?: object, users?: object[]) => string,
  exec: object,
): RefusedKubeconfig[] => [
  ['runs no program', () => config({}, { exec }), 'KubeconfigRefused', /user "u" of context "c" has exec/],
  [
    'runs none of another user',
    () => config({}, {}, [{ name: 'x', user: { exec } }]),
    'KubeconfigRefused',
    /user "x" has exec/,
  ],
  ['asks no provider', () => config({}, { 'auth-provider': { name: 'gcp' } }), 'KubeconfigRefused', /auth-provider/],
  ['reads no token from a file', () => config({}, { tokenFile: '/etc/hostname' }), 'KubeconfigRefused', /tokenFile/],
  [
    'reads no authority',
    () => config({ 'certificate-authority': '/etc/hostname' }),
    'KubeconfigRefused',
    /certificate-authority/,
  ],
  ['reads no certificate', () => config({}, { 'client-certificate': '/a' }), 'KubeconfigRefused', /client-certificate/],
  ['reads no key', () => config({}, { 'client-key': '/etc/hostname' }), 'KubeconfigRefused', /client-key/],
  ['goes through no proxy', () => config({ 'proxy-url': 'http://127.0.0.1:1' }), 'KubeconfigRefused', /proxy-url/],
  [
    'trusts nobody unseen',
    () => config({ 'insecure-skip-tls-verify': true }),
    'KubeconfigRefused',
    /insecure-skip-tls-verify/,
  ],
  ['sends nothing in the clear', () => config({ server: 'http://example.com' }), 'KubeconfigRefused', /without https/],
  ['shows no password', () => config({ server: 'https://a:hidden@example.com' }), 'KubeconfigRefused', /^(?!.*hidden)/],
  ['is not quoted', () => 'clusters: [\ntoken: hidden', 'KubeconfigRefused', /^(?!.*hidden).*not a kubeconfig/s],
  ['is one', () => 'hello', 'KubeconfigRefused', /not a kubeconfig/],
  ['has a URL', () => config({ server: 'https://' }), 'KubeconfigRefused', /Invalid URL/],
  ['has one that fits', () => config({ server: `https://${'a'.repeat(3000)}` }), 'KubeconfigRefused', /too long/],
  [
    'is not empty',
    () => '',
    'KubeconfigMissing',
    /^Secret shop\/\w+ has no key value: put the kubeconfig of the cluster into its key value$/,
  ],
  [
    'does not reach metadata',
    () => config({ server: 'https://169.254.169.254' }),
    'KubeconfigRefused',
    /^address 169.254.169.254 is internal/,
  ],
  [
    'does not by another writing',
    () => config({ server: 'https://[::ffff:a9fe:a9fe]' }),
    'KubeconfigRefused',
    /is internal/,
  ],
  [
    'does not reach a network inside',
    () => config({ server: 'https://10.96.0.1' }),
    'KubeconfigRefused',
    /^address 10.96.0.1 is internal/,
  ],
];
