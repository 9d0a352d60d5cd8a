import { describe, expect, it } from 'vitest';
import { asSigned, pathOfKey, presignUrl, signHeaders } from '../../../../providers/aws/sigv4.ts';
import * as fakes from '../../../kit/cloud/web/signature.ts';

type Signable = Parameters<typeof signHeaders>[0];

/**
 * Credentials, date and scope of AWS' published Signature Version 4 test suite
 * (docs.aws.amazon.com/general/latest/gr/signature-v4-test-suite.html).
 */
const key = { accessKeyID: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const now = new Date('2015-08-30T12:36:00Z');
const scope = { service: 'service', region: 'us-east-1', now };
const HOST = 'https://example.amazonaws.com';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const signatureOf = (headers: Record<string, string>) => /Signature=([0-9a-f]{64})$/.exec(headers.authorization!)?.[1];

/** Signs as the product does, and says so if the fake clouds would not take it: each stands against the other, and both against AWS. */
const bothSigned: typeof signHeaders = async (request, owner, at) => {
  const headers = await signHeaders(request, owner, at);
  const payloadHash = request.headers['x-amz-content-sha256'];
  const again = fakes.signed({ ...request, ...(payloadHash && { payloadHash }) }, owner, at);
  expect(headers.authorization).toBe(again.authorization);
  return headers;
};

describe('a request signed with Signature Version 4', () => {
  it.each([
    ['get-vanilla', 'GET', '/', {}, '', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    [
      'get-vanilla-query-order-key-case',
      'GET',
      '/?Param2=value2&Param1=value1',
      {},
      '',
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    ],
    ['post-vanilla', 'POST', '/', {}, '', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
    [
      'post-x-www-form-urlencoded',
      'POST',
      '/',
      FORM,
      'Param1=value1',
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
  ])('has the signature of the AWS test suite: %s', async (_name, method, path, headers, body, signature) => {
    expect(signatureOf(await bothSigned({ method, url: new URL(path, HOST), headers, body }, key, scope))).toBe(
      signature,
    );
  });

  it('signs the path as sent, encoded once more (computed with botocore 1.43.11)', async () => {
    const url = new URL('/-._~0123456789abc%20d', HOST);
    expect(signatureOf(await bothSigned({ method: 'GET', url, headers: {}, body: '' }, key, scope))).toBe(
      '973e60ecddbe2975f4b17ca6608362e3d13ac16545a4ad64be3a8f4a683deb57',
    );
  });

  it('lists the signed headers', async () => {
    const headers = await bothSigned({ method: 'GET', url: new URL(HOST), headers: {}, body: '' }, key, scope);
    expect(headers.authorization).toContain(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ',
    );
    expect(headers['x-amz-date']).toBe('20150830T123600Z');
  });

  it('carries and signs the token of temporary credentials (computed with botocore 1.43.11)', async () => {
    const url = new URL('https://eks.eu-central-1.amazonaws.com/clusters/shoot--shop--one/node-groups/a-1');
    const temporary = { ...key, sessionToken: 'TOKEN/+==' };
    const headers = await bothSigned({ method: 'GET', url, headers: {}, body: '' }, temporary, {
      service: 'eks',
      region: 'eu-central-1',
      now,
    });
    expect(headers['x-amz-security-token']).toBe('TOKEN/+==');
    expect(signatureOf(headers)).toBe('3a15917c4ec56f5c8607a5956d2ab5703b4873d01137edbd74f33f3123eb4446');
  });
});

describe('the request for an S3 object', () => {
  it('encodes the key once in URL and signature (S3 API reference, "Example: PUT Object")', async () => {
    const url = new URL(`https://examplebucket.s3.amazonaws.com/${pathOfKey('test$file.text')}`);
    const headers = {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    };
    const owner = {
      accessKeyID: 'AKIAIOSFODNN7EXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'.replace('+', '/'),
    };
    const at = { service: 's3', region: 'us-east-1', now: new Date('2013-05-24T00:00:00Z') };
    const payloadHash = headers['x-amz-content-sha256'];
    // With a header that AWS' own signer never signs: the fakes' shows that it is right, and that the product's agrees.
    const request: Signable = { method: 'PUT', url, headers, body: '' };
    expect(signatureOf(fakes.signed({ ...request, payloadHash }, owner, at))).toBe(
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    );
    const { date: _, ...undated } = headers;
    await bothSigned({ ...request, headers: undated }, owner, at);
  });

  it.each([
    ['a b+c/ü&?.tar', '/a%20b%2Bc/%C3%BC%26%3F.tar'],
    ['100%.tar', '/100%25.tar'],
    ['plain/key-1_2.tar', '/plain/key-1_2.tar'],
  ])('has the path of key %s', async (name, path) => {
    const url = new URL(`https://bucket.s3.amazonaws.com/${pathOfKey(name)}`);
    expect(url.pathname).toBe(path);
    await bothSigned({ method: 'GET', url, headers: {}, body: '' }, key, { ...scope, service: 's3' });
  });

  it('lists with a query that is sent as signed', async () => {
    const url = new URL('https://bucket.s3.amazonaws.com/');
    url.searchParams.set('prefix', 'a b+c*');
    expect(asSigned(url).search).toBe('?prefix=a%20b%2Bc%2A');
  });
});

describe('a presigned URL', () => {
  const url = new URL('https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15');
  const request = { method: 'GET', url, headers: { 'x-k8s-aws-id': 'shoot--shop--one' } };
  const sts = { service: 'sts', region: 'eu-central-1', now, expiresSeconds: 60 };

  it.each([
    ['lasting', key, '0a43ffc60d4efc8973dcfea7e673e38acad2778e9698337c0236a33264480bce'],
    [
      'temporary',
      { ...key, sessionToken: 'TOKEN/+==' },
      '2790dd380f315a03f5c628ea03951a1e07f187b9aabf056004cb4046039c90a9',
    ],
  ])('by %s credentials equals that of botocore 1.43.11', async (_what, credentials, signature) => {
    const { origin, searchParams } = new URL(await presignUrl(request, credentials, sts));
    expect(origin).toBe('https://sts.eu-central-1.amazonaws.com');
    expect(Object.fromEntries(searchParams)).toEqual({
      Action: 'GetCallerIdentity',
      Version: '2011-06-15',
      'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
      'X-Amz-Credential': 'AKIDEXAMPLE/20150830/eu-central-1/sts/aws4_request',
      'X-Amz-Date': '20150830T123600Z',
      'X-Amz-Expires': '60',
      'X-Amz-SignedHeaders': 'host;x-k8s-aws-id',
      ...('sessionToken' in credentials && { 'X-Amz-Security-Token': credentials.sessionToken }),
      'X-Amz-Signature': signature,
    });
  });
});
