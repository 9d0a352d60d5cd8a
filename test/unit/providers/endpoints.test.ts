import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { getJson } from '../../../providers/aws/api.ts';
import { pluginEndpoints as awsPlugin, endpointOf } from '../../../providers/aws/endpoints.ts';
import { endpointsAt as azureAt, pluginEndpoints as azurePlugin } from '../../../providers/azure/endpoints.ts';
import { endpointsOf } from '../../../providers/endpoints.ts';
import { endpointsAt as gcpAt, pluginEndpoints as gcpPlugin } from '../../../providers/gcp/endpoints.ts';
import { GOOGLE } from '../../../providers/gcp/google-api.ts';
import { FakeAws } from './aws/fake-aws.ts';

const profile = (providerConfig?: object) =>
  ({ metadata: { name: 'private' }, spec: { ...(providerConfig && { providerConfig }) } }) as unknown as CloudProfile;
const named = (endpoints: unknown) => profile({ endpoints });

describe('the endpoints of a cloud', () => {
  it("default to the cloud's, and can be set in the profile", () => {
    expect(endpointsOf(profile(), ['sts'])).toEqual({});
    expect(endpointsOf(named({ sts: 'https://sts.example.org/' }), ['sts', 'ec2'])).toEqual({
      sts: 'https://sts.example.org',
    });
  });

  it.each([
    ['no map', ['https://a']],
    ['names s3', { s3: 'https://a' }],
    ['sts is no URL', { sts: 'sts.example.org' }],
    ['sts is no URL', { sts: 'https://me:secret@sts.example.org' }],
    ['sts is http', { sts: 'http://sts.example.org' }],
  ])('are refused: %s', (text, endpoints) => {
    expect(() => endpointsOf(named(endpoints), ['sts'])).toThrow(text);
  });

  it('can be on this machine without TLS', () => {
    for (const host of ['127.0.0.1:8000', 'localhost', '[::1]:80'])
      expect(endpointsOf(named({ sts: `http://${host}` }), ['sts']).sts).toMatch(/^http:/);
    expect(() => endpointsOf(named({ sts: 'http://127.0.0.1.example.org' }), ['sts'])).toThrow('is http');
  });

  it('are equal for the operator and the plugin at AWS', () => {
    const here = named({ sts: 'https://sts.a', tagging: 'https://tags.a' });
    expect(endpointOf(here)?.('sts', 'eu-central-1')).toBe('https://sts.a');
    expect(endpointOf(here)?.('ec2', 'eu-central-1')).toBeUndefined();
    expect(awsPlugin(here)).toEqual({
      AWS_ENDPOINT_URL_STS: 'https://sts.a',
      AWS_ENDPOINT_URL_RESOURCE_GROUPS_TAGGING_API: 'https://tags.a',
    });
  });

  it('can have a path at AWS, which is signed', async () => {
    const one = { cluster: { name: 'one' } };
    await using fake = await FakeAws.start(({ action }) =>
      action === '/gate/eks/clusters/one' ? { body: one } : undefined,
    );
    const at = endpointOf(named({ eks: `${fake.endpoint()}/gate/eks/` }));
    const aws = { ...fake.connection(), endpoint: at };
    expect(await getJson(aws, 'eks', 'DescribeCluster', '/clusters/one')).toEqual(one);
  });

  it('are equal for the operator and the plugin at Google', () => {
    const here = named({ container: 'https://gke.a', oauth: 'https://oauth.a' });
    expect(gcpAt(here, GOOGLE)).toEqual({ ...GOOGLE, container: 'https://gke.a', oauth: 'https://oauth.a' });
    expect(gcpPlugin(here)).toEqual({ GOOGLE_CONTAINER_CUSTOM_ENDPOINT: 'https://gke.a/v1beta1/' });
  });

  it('are equal for the operator and the plugin at Azure', () => {
    const china = named({ login: 'https://login.a', management: 'https://management.a' });
    expect(azureAt(china, { login: 'x', management: 'y' })).toEqual({
      login: 'https://login.a',
      management: 'https://management.a',
    });
    expect(azurePlugin(china)).toEqual({ ARM_METADATA_HOSTNAME: 'management.a' });
    expect(azurePlugin(profile())).toEqual({});
  });
});
