"""Secrets that only the words around them give away, and words that speak of secrets without telling one."""

from __future__ import annotations

import re

import pytest

from edge.admission.redact import Redactor

ZH = Redactor()

# ⟦…⟧ is what must go.
SAID = (
    "my password is ⟦hunter2⟧", "My password is ⟦hunter2⟧.", "my password is ⟦swordfish⟧.",
    "the wifi password is ⟦Sun!flower⟧, ask Anna", "The password for the NAS at home is ⟦hunter22⟧",
    "password for anna@example.org is ⟦hunter2⟧", "my password's ⟦hunter2⟧", "password ⟦hunter2⟧",
    "Password - ⟦hunter2⟧", "password was changed to ⟦hunter2⟧", "please set the root password to ⟦Sunflower99⟧",
    "I changed my password to ⟦Sunflower99⟧", "⟦hunter2⟧ is my password", "use ⟦hunter2⟧ as the password",
    'the password is "⟦correct horse battery staple⟧"', "the passphrase is ⟦correct horse battery staple⟧",
    "passphrase: ⟦correct horse battery staple⟧", "password: ⟦hunter2⟧", "password：⟦hunter2⟧",
    "Password:\n⟦hunter2⟧\n", "user: anna / password: ⟦hunter2⟧", "pwd: ⟦hunter2⟧", "pass: ⟦hunter2⟧",
    "DB_PASSWORD=⟦hunter2⟧", "export MYSQL_ROOT_PASSWORD=⟦a&b;c9⟧", "password = '⟦hunter2⟧'", '"password": "⟦x y z⟧"',
    ":password => '⟦hunter2⟧'", "<password>⟦hunter2⟧</password>", "--password ⟦hunter2⟧", "--password=⟦hunter2⟧ shop",
    "Server=db;Password=⟦abc⟧;Encrypt=true", "?user=anna&password=⟦hunter2⟧&x=1",
    "{user: 'anna', password: '⟦hunter2⟧'}", "| nas | password | ⟦hunter2⟧ |", 'if password == "⟦hunter2⟧":',
    "postgres://anna:⟦p⟧@h/db", "redis://:⟦foo⟧@localhost:6379/0", "mongodb+srv://a:⟦S3cr/3t⟧@c0.mongodb.net",
    "git clone https://anna:⟦pa55⟧@git.local/x.git", "mysql -uroot -p⟦Abc123⟧ shop",
    "sshpass -p ⟦Abc123⟧ ssh root@10.0.0.5", "curl -u admin:⟦hunter2⟧ https://nas", "IDENTIFIED BY '⟦hunter2⟧'",
    "Authorization: Basic ⟦YWRtaW46aHVudGVyMg==⟧", "My PIN is ⟦4821⟧", "verification code: ⟦482913⟧",
    "my OTP is ⟦482913⟧", "密码是⟦abc123⟧", "密码是 ⟦abc123⟧。", "密码 是 ⟦abc123⟧", "密码为⟦abc123⟧",
    "密码：⟦abc12345⟧，账号：bob", "我的支付宝登录密码是⟦wang1990⟧，记一下", "支付密码⟦123456⟧",
    "密码就是⟦Abc@123⟧啊", "密码改成了⟦Abc@123⟧", "密码换成⟦Abc@123⟧了", "初始密码默认为⟦abc123⟧",
    "门锁密码是 ⟦135790⟧", "开机密码 ⟦8888⟧", "保险箱密码：⟦9527⟧", "旧密码是⟦old123⟧，新密码是⟦new456⟧",
    "密码都是同一个：⟦same1234⟧", "账号密码：⟦admin/admin123⟧", "账号admin密码⟦admin123⟧",
    "密码（区分大小写）⟦Abc123⟧", "WiFi密码（5G）：⟦abc12345⟧", "密码是“⟦芝麻开门⟧”", "密码是「⟦芝麻开门⟧」，别忘了",
    "密码是我生日⟦19900101⟧", "密码：⟦我爱你520⟧", "密码：\n⟦abc123⟧", "密码是⟦ａｂｃ１２３⟧，别忘了",
    "密碼是⟦abc123⟧", "口令：⟦toor123⟧", "用⟦abc123⟧当密码", "⟦abc123⟧是我的密码", "验证码是⟦384921⟧",
    "【银行】动态码⟦384921⟧，请勿泄露", "取款密码是⟦384921⟧", "提取码: ⟦x7k2⟧", "\\n密码是⟦abc123⟧\\n",
)  # fmt: skip

KEYS = (
    "api_key = \"⟦a8f5f167f44f4964e6c998dee827110c⟧\"", "API_KEY=⟦a8f5f167f44f4964e6c998dee827110c⟧",
    "api key: ⟦550e8400-e29b-41d4-a716-446655440000⟧", "my api key is ⟦a8f5f167f44f4964e6c998dee827110c⟧",
    "The API key for the weather service: ⟦a8f5f167f44f4964e6c998dee827110c⟧",
    "API密钥是⟦a8f5f167f44f4964e6c998dee827110c⟧", "token是⟦a8f5f167f44f4964e6c998dee827110c⟧，别外传",
    "aws_secret_access_key=⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧",
    "Authorization: Bearer ⟦abcdef0123456789abcdef⟧", "Bearer ⟦abcdef0123456789abcdef⟧",
    "X-Auth-Token: ⟦0123456789abcdef0123⟧", "client_secret=⟦hunter2hunter2⟧",
    "https://x.org/?access_token=⟦a8f5f167f44f4964⟧&page=2",
    "AccountKey=⟦Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==⟧;Endpoint=x",
    "\"refreshToken\": \"⟦a8f5f167f44f4964e6c998dee827110c⟧\"",
    "https://hooks.slack.com/services/⟦T00000000/B00000000/aBcDeFgHiJkLmNoPqRsTuVwX⟧",
)  # fmt: skip

TOLD_NOTHING = (
    "忘记密码了怎么办", "密码学", "密码是什么", "密码是错的", "密码是6位数", "密码应为8-20位", "密码2024年改过",
    "密码输错3次就会锁定", "密码：请联系管理员", "密码：******", "密码：无", "密码在便签上", "密码用SHA256加密",
    "密码保护", "验证码60秒后失效", "请输入6位验证码", "令牌桶算法", "密钥长度2048位", "凭证号：记-0012",
    "取件码3-2-1088", "财富密码3.0", "password reset", "the password is required", "my password is not working",
    "The password is wrong.", "Is the password okay?", "Password: at least 8 characters", "password policy v2.1",
    "1Password 8 is out", "the password is the same as before", "the passphrase is used to encrypt the key",
    "Passwords should never be shared.", "the token count is 4096", "max_tokens: 4096", '"input_tokens": 15430,',
    "tokenizer", "token = 4096", "refresh token rotation", "secret agent 007", "keep it secret",
    "the api key is stored in AWS", "key: 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sessionId: 550e8400-e29b-41d4-a716-446655440000", "Boarding pass: gate 14", "pass: 12 fail: 3", "pass@1: 0.672",
    "All 312 tests pass.", "pin: 17", "#define PIN_LED 13", "int pin = 13;", "Erlang OTP 26", "basic authentication",
    "password: str", "password: string;", "password=password", "password = os.environ['X']",
    "password = getpass.getpass()", "self.password = password", "if password != confirm:", "password: ${DB_PASSWORD}",
    "PASSWORD=<your password>", "password=xxxxxxxx", "password_hash = hash(password)", "PASSWORD_MIN_LENGTH = 12",
    "api_key = config.api_key", "API_KEY=your-api-key-here", "PWD=/srv/anna", "postgres://${USER}:${PASS}@db/app",
    "Authorization: Bearer $TOKEN", "http://a.org:80/x?m=a@b.org", "risk-based-login-2024 Is the password correct?",
    '<input type="password" name="password">', "Failed password for root from 10.0.0.9 port 52144 ssh2",
)  # fmt: skip


@pytest.mark.parametrize("marked", SAID)
def test_a_password_that_is_told_goes(marked: str) -> None:
    _check(marked, "[密码]", "credential")


@pytest.mark.parametrize("marked", KEYS)
def test_a_key_that_is_named_goes(marked: str) -> None:
    _check(marked, "[密钥]", "token")


@pytest.mark.parametrize("text", TOLD_NOTHING)
def test_talk_about_secrets_stays(text: str) -> None:
    assert ZH.redact(text).text is text


def _check(marked: str, placeholder: str, kind: str) -> None:
    result = ZH.redact(re.sub("[⟦⟧]", "", marked))
    assert result.text == re.sub("⟦.*?⟧", placeholder, marked)
    assert set(result.counts) == {kind}


def test_a_draft_s_first_pass_is_no_password() -> None:
    text = 'Here is a first pass: "Your boxes keep working when the internet is down", "Charts open faster"'
    assert Redactor().redact(text).text is text
    assert Redactor("en").redact('pass: "correct horse battery staple"').text == 'pass: "[password]"'
