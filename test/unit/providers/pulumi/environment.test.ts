import { describe, expect, it } from 'vitest';
import { engineEnvironment, secretsOf, workerEnvironment } from '../../../../providers/pulumi/environment.ts';

const place = { home: '/home/pulumi', engine: '/tools/pulumi-3/pulumi', acquirePlugins: false };
const operators = {
  HOME: '/root',
  AWS_SECRET_ACCESS_KEY: 'the operator’s',
  KUBECONFIG: '/k',
  HTTPS_PROXY: 'http://proxy',
  PATH: '/x',
};
const backend = { url: 'file:///state', passphrase: 'phrase', env: {} };

describe('the environment of a Pulumi engine', () => {
  const environment = engineEnvironment(
    { backend, credentials: { AWS_ACCESS_KEY_ID: 'a' }, settings: { AWS_REGION: 'eu-central-1' } },
    place,
    operators,
  );

  it("contains its inputs, and of the operator's only the settings to reach a cloud", () => {
    expect(environment).toMatchObject({
      AWS_ACCESS_KEY_ID: 'a',
      AWS_REGION: 'eu-central-1',
      HTTPS_PROXY: 'http://proxy',
    });
    for (const name of ['AWS_SECRET_ACCESS_KEY', 'KUBECONFIG']) expect(environment).not.toHaveProperty(name);
    expect(environment.HOME).toBe('/home/pulumi');
    expect(environment.PATH).not.toContain('/x');
  });
  it("disables update checks, plugin downloads, and the machine's role", () => {
    expect(environment).toMatchObject({
      PULUMI_SKIP_UPDATE_CHECK: 'true',
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: 'true',
      AWS_EC2_METADATA_DISABLED: 'true',
    });
  });
  it('can be overridden by settings', () => {
    const other = engineEnvironment(
      { backend, credentials: {}, settings: { AWS_EC2_METADATA_DISABLED: 'false' } },
      place,
      {},
    );
    expect(other.AWS_EC2_METADATA_DISABLED).toBe('false');
  });
});

describe('the URL of a state backend', () => {
  const urlFor = (url: string) =>
    engineEnvironment({ backend: { ...backend, url }, credentials: {} }, place, {}).PULUMI_BACKEND_URL;

  it('in a directory disables metadata files, which a killed engine could leave empty', () => {
    expect(urlFor('file:///state')).toBe('file:///state?metadata=skip');
    expect(urlFor('file:///state?no_tmp_dir=true')).toBe('file:///state?no_tmp_dir=true&metadata=skip');
  });
  it('in a bucket is that of the profile', () => {
    expect(urlFor('s3://state/fleet?region=eu-central-1')).toBe('s3://state/fleet?region=eu-central-1');
  });
});

it('workerEnvironment contains no credentials', () => {
  expect(Object.keys(workerEnvironment('/home/pulumi', operators)).sort()).toEqual(['HOME', 'HTTPS_PROXY', 'PATH']);
});

it('engineEnvironment refuses a variable that backend and account both set', () => {
  const env = { AWS_ACCESS_KEY_ID: 'of the backend' };
  const ask = (mine: string) =>
    engineEnvironment({ backend: { ...backend, env }, credentials: { AWS_ACCESS_KEY_ID: mine } }, place, {});
  expect(() => ask('of the account')).toThrow(/both set AWS_ACCESS_KEY_ID/);
  expect(ask('of the backend').AWS_ACCESS_KEY_ID).toBe('of the backend');
});

it('engineEnvironment refuses to store secrets in plain text', () => {
  const bare = { url: 'file:///state', env: {} };
  expect(() => engineEnvironment({ backend: bare, credentials: {} }, place, {})).toThrow(/passphrase/);
  expect(
    engineEnvironment({ backend: { ...bare, secretsProvider: 'awskms://k' }, credentials: {} }, place, {}),
  ).toBeDefined();
});

it('secretsOf returns all values to redact', () => {
  const url = 'postgres://user:in%20url@db/state';
  const secrets = secretsOf({
    backend: { url, passphrase: 'phrase', env: { TOKEN: 'token' } },
    credentials: { KEY: 'key' },
  });
  expect(secrets.filter(Boolean).sort()).toEqual(['in url', 'key', 'phrase', 'token']);
});
