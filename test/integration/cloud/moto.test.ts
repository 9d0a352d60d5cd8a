import { CreateRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../../providers/aws/api.ts';
import { credentialsOf } from '../../../providers/aws/credentials.ts';
import { openSession } from '../../../providers/aws/session.ts';
import { textAt } from '../../../providers/aws/xml.ts';
import type { CloudAccount } from '../../../providers/cloud.ts';
import { keepsBuckets } from '../../kit/conformance/buckets.ts';
import { keepsRecords } from '../../kit/conformance/dns.ts';
import { type Moto, type MotoUser, REGION, startMoto } from '../../kit/emulators/moto.ts';
import { motoBucketTestbed, motoDNSTestbed } from '../../kit/emulators/moto-testbeds.ts';
import { installMoto } from '../../kit/emulators/packages.ts';

/** AWS that others have written, so that the product and our own fakes cannot be wrong in the same way. */
const moto = await installMoto();
const folder = 'folder' in moto ? moto.folder : '';
const why = 'reason' in moto ? `: ${moto.reason}` : '';

describe.skipIf(folder === '')(`AWS, as moto plays it${why}`, () => {
  keepsBuckets('the provider aws', () => motoBucketTestbed(folder));
  keepsRecords('the provider aws', () => motoDNSTestbed(folder));

  describe('openSession', () => {
    const ROLE = 'arn:aws:iam::111111111111:role/coppice';
    let aws: Moto;
    let user: MotoUser;
    let stranger: MotoUser;
    beforeAll(async () => {
      aws = await startMoto(folder);
      user = await aws.user('111111111111', 'coppice', ['iam:*', 'sts:*', 'route53:*']);
      stranger = await aws.user('111111111111', 'stranger', ['sts:*']);
      const trust = {
        Effect: 'Allow',
        Principal: { AWS: 'arn:aws:iam::111111111111:user/coppice' },
        Action: 'sts:AssumeRole',
      };
      const AssumeRolePolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [trust] });
      await new IAMClient(user.options).send(new CreateRoleCommand({ RoleName: 'coppice', AssumeRolePolicyDocument }));
      await aws.enforce();
    });
    afterAll(() => aws?.close());

    /** Whom AWS takes the credentials for. Not by checkAccount: moto does not know iam:SimulatePrincipalPolicy. */
    async function identityOf(account: CloudAccount): Promise<string> {
      const { signal } = new AbortController();
      const connection = { region: REGION, endpoint: () => aws.endpoint, now: () => new Date(), signal };
      const key = await openSession(credentialsOf(account), connection);
      const answer = await query({ ...connection, key }, 'sts', 'GetCallerIdentity');
      return textAt(answer, 'GetCallerIdentityResult', 'Arn');
    }
    const changed = ({ account }: MotoUser, credentials: Record<string, string>): CloudAccount => ({
      id: account.id,
      credentials: { ...account.credentials, ...credentials },
    });

    it('returns a key that AWS identifies as the user', async () => {
      expect(await identityOf(user.account)).toBe('arn:aws:iam::111111111111:user/coppice');
    });

    it('returns a session that AWS identifies as the role that trusts the user', async () => {
      expect(await identityOf(changed(user, { roleARN: ROLE }))).toBe(
        'arn:aws:sts::111111111111:assumed-role/coppice/coppice',
      );
    });

    it.each<[string, (known: MotoUser, unknown: MotoUser) => CloudAccount, string]>([
      ['another secret', (known) => changed(known, { secretAccessKey: 'a guess' }), 'ERR_INFRA_UNAUTHENTICATED'],
      [
        'a key that nobody has',
        (known) => changed(known, { accessKeyID: 'AKIANOBODYNOBODYNOBO' }),
        'ERR_INFRA_UNAUTHENTICATED',
      ],
      [
        'a role that does not trust the user',
        (_, unknown) => changed(unknown, { roleARN: ROLE }),
        'ERR_INFRA_UNAUTHORIZED',
      ],
    ])('fails, or AWS refuses its key, with %s', async (_what, account, code) => {
      await expect(identityOf(account(user, stranger))).rejects.toMatchObject({ code });
    });
  });
});
