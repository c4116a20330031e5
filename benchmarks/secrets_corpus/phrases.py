"""What people write around a secret; {} is where it stands."""

from __future__ import annotations

CARDS = (
    "{}", "卡号{}", "卡号{}元", "我的银行卡号是{}，开户行是工商银行。", "请把钱打到 {} 这张卡上",
    "工资卡：{}（招行）", "转账给{}，户名王小明", "帮我记一下信用卡 {}，有效期 09/28", "刚办的卡，{}，别弄丢了。",
    "卡号：{} 密码我另发", "收款账户{}", "妈妈的卡是{}。", "1. {}\n2. 没有了", "my card number is {}.",
    "Card: {} exp 12/27 cvv", "charge it to {} please", "Visa {} (Anna)", "I paid with {}, and it was declined.",
    'card: "{}"', "card={}&amount=20", "| Anna | {} | 12/27 |", "The old one ({}) expires in May", "→{}←",
    "卡{}，到期2027年3月", "number:\n{}\n", "“{}”是副卡", "用这个卡：{}谢谢！",
)  # fmt: skip

IDENTITIES = (
    "{}", "身份证{}号", "我的身份证号是{}", "身份证号码：{}，姓名李雷", "乘机人：韩梅梅 {}", "证件号 {} 请核对",
    "（{}）", "孩子的身份证是{}，下周办护照。", "ID number {}", "my Chinese ID is {}, born in Beijing",
    '"id_card": "{}"', "identity: {};", "name,id\n王芳,{}\n", "住客登记{}已完成", "他的号码{}，帮我实名一下",
    "The passenger's identity number is {}.",
)  # fmt: skip

PASSWORDS = (
    ("said", "my password is {}"), ("said", "My password is {}, don't tell anyone."),
    ("said", "the wifi password is {}"), ("said", "The password for the NAS is {}."),
    ("said", "Password was {} until yesterday"), ("said", "my Netflix password's {}"),
    ("said", "I changed my password to {}"), ("said", "please set the admin password to {} tonight"),
    ("said", "password is now {}"), ("assigned", "password: {}"), ("assigned", "Password：{}"),
    ("assigned", "login: anna\npassword: {}\n"), ("assigned", "user=anna password={}"),
    ("assigned", "DB_PASSWORD={}"), ("assigned", "export MYSQL_ROOT_PASSWORD={}\nexport HOST=db"),
    ("assigned", 'POSTGRES_PASSWORD="{}"'), ("assigned", "spring.datasource.password={}"),
    ("assigned", '{"user": "anna", "password": "{}"}'), ("assigned", "  password: '{}'  # prod"),
    ("assigned", 'conn = connect(user="root", passwd="{}")'), ("assigned", "pwd: {}"),
    ("assigned", "Server=db;User Id=sa;Password={};Encrypt=true"), ("assigned", "WIFI_PASS={}"),
    ("assigned", "pass: {}"), ("assigned", "<password>{}</password>"), ("option", "mysqldump --password={} shop"),
    ("option", "tool login --username anna --password {}"), ("shell", "mysql -uroot -p{} shop"),
    ("shell", "sshpass -p {} ssh root@10.0.0.5"), ("shell", "curl -u admin:{} https://nas.local/api"),
    ("url", "postgres://anna:{}@db.local:5432/shop"), ("url", "redis://:{}@127.0.0.1:6379/0"),
    ("url", "git clone https://anna:{}@git.local/x.git"), ("url", "连接串是 mysql://root:{}@192.168.1.5/app 。"),
    ("url", "amqp://guest:{}@mq:5672"), ("basic", "Authorization: Basic {}"),
    ("basic", "curl -H 'Authorization: Basic {}' https://x"), ("reversed", "{} is my password"),
    ("reversed", "use {} as the password"), ("beside", "password {}"), ("said", "密码是{}"),
    ("said", "我的密码是 {}，帮我记住。"), ("said", "家里wifi密码是{}。"), ("said", "路由器后台密码改成了{}"),
    ("said", "密码就是{}啊"), ("said", "邮箱密码还是{}"), ("said", "初始密码默认为{}"),
    ("said", "我把密码设置为{}了"), ("assigned", "密码：{}"), ("assigned", "账号：anna 密码：{}"),
    ("assigned", "用户名admin，密码:{}，端口8080"), ("assigned", "WiFi密码（5G）：{}"), ("assigned", "口令：{}"),
    ("assigned", "登录密码={}"), ("said", "口令是{}"), ("beside", "账号 anna 密码 {}"), ("beside", "密码{}"),
    ("reversed", "用{}当密码"), ("reversed", "{}是我的密码"), ("quoted", "密码是“{}”"), ("quoted", '密码: "{}"'),
    ("quoted", "The password is '{}'."), ("quoted", "密码是「{}」，别忘了"), ("wide", "密码是{}"),
    ("wide", "密码：{}"), ("code", "验证码是{}"), ("code", "您的验证码：{}，5分钟内有效"),
    ("code", "verification code: {}"), ("code", "取款密码是{}"), ("code", "My PIN is {}"),
    ("code", "【银行】动态码{}，请勿泄露"), ("two lines", "密码：\n{}"), ("two lines", "Password:\n{}\n"),
    ("table", "| nas | password | {} |"),
)  # fmt: skip

TOKENS = (
    "{}", "my key is {}", "OPENAI_API_KEY={}", 'api_key = "{}"', "export TOKEN={}", "这是我的key：{}，帮我存一下",
    "密钥{}别泄露", "token是{}。", "用 {} 调用就行", "Authorization: Bearer {}",
    'headers = {"Authorization": "Bearer {}"}', "curl -H 'X-Api-Key: {}' https://x",
    "https://api.example.org/v1?key={}&q=1", "({})", "here you go: {}, it expires on Friday",
    "2026-01-05 12:00:01 DEBUG using {} for upstream", "`{}`", '{"token":"{}"}', "first line\\n{}\\nlast line",
    "令牌：{}", "旧的{}已经作废", "<key>{}</key>", "- {}\n- next", "key:{}",
)  # fmt: skip

NAMED_KEYS = (
    ("env", "API_KEY={}"), ("env", "SECRET_KEY={}\nDEBUG=1"), ("env", "aws_secret_access_key = {}"),
    ("env", "CLIENT_SECRET='{}'"), ("env", "TWILIO_AUTH_TOKEN={}"), ("json", '"api_key": "{}"'),
    ("json", '"access_token":"{}"'), ("json", '"refreshToken": "{}"'), ("json", '"appSecret": "{}"'),
    ("yaml", "api-key: {}"), ("yaml", "  token: {}\n  host: x"), ("header", "X-Api-Key: {}"),
    ("header", "Authorization: Bearer {}"), ("header", "Authorization: token {}"), ("header", "Bearer {}"),
    ("code", "client = Client(api_key='{}')"), ("code", 'const apiKey = "{}";'), ("code", "auth_token := `{}`"),
    ("url", "https://x.org/data?access_token={}&page=2"), ("url", "https://x.org/?api_key={}"),
    ("said", "my api key is {}"), ("said", "the access token for the blog is {}"), ("said", "API密钥是{}"),
    ("said", "密钥：{}"), ("said", "token是{}，别外传"), ("said", "访问令牌为{}"), ("said", "AppSecret：{}"),
    ("said", "The API key for the weather service: {}"),
)  # fmt: skip

OWN_LINE = (
    "{}",
    "这是我的私钥：\n{}\n别外传",
    "here is my key:\n{}\nthanks",
    "cat ~/.ssh/id_rsa\n{}\n$ ls",
    "```\n{}\n```",
    "key:\n\n{}\n\n好了",
)
JSON_STRINGS = (
    '{"type": "service_account", "private_key": "{}\\n", "client_id": "1"}',
    'KEY="{}"',
    'key = "{}"\nhost = "x"',
)
