import { expect, it } from 'vitest';
import { childEnvironment } from '../../../operator/garden/processes/child-environment.ts';
import { environmentProxy } from '../../../operator/kube/http/http-proxy.ts';
import { workerEnvironment } from '../../../providers/pulumi/environment.ts';

const proxies = { https_proxy: 'http://small:1', HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.corp.example' };

it('childEnvironment passes proxies unchanged, but no secrets', () => {
  const seen = childEnvironment({ ...proxies, PATH: '/bin', AWS_SECRET_ACCESS_KEY: 'hush' });
  expect(seen).toMatchObject({ https_proxy: 'http://small:1', HTTPS_PROXY: 'http://proxy:3128', PATH: '/bin' });
  expect(seen).not.toHaveProperty('AWS_SECRET_ACCESS_KEY');
  expect(childEnvironment({ PATH: '/bin' })).toEqual({ PATH: '/bin' });
});

it("directToGardens excludes gardens from proxies, and keeps the person's exceptions", () => {
  const seen = childEnvironment(proxies);
  for (const host of ['10.161.0.1', '10.191.255.1', 'api.corp.example'])
    expect(environmentProxy(`https://${host}:6443`, seen)).toBeUndefined();
  expect(environmentProxy('https://10.0.0.1:6443', seen)?.name).toBe('http://small:1');
});

it('directToGardens adds its exception once, however often it is passed on', () => {
  const once = childEnvironment(proxies);
  expect(childEnvironment(once).NO_PROXY).toBe(once.NO_PROXY);
});

it("directToGardens reaches Pulumi's workers through the operator", () => {
  const seen = workerEnvironment('/home', childEnvironment({ ...proxies, http_proxy: 'http://plain:2' }));
  const direct = '.corp.example,10.160.0.0/11';
  expect(seen).toMatchObject({ ...proxies, http_proxy: 'http://plain:2', NO_PROXY: direct, no_proxy: direct });
});
