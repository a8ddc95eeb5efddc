"""Functions that wait for the network."""

import asyncio
import ftplib
import json
import smtplib
import socket
import ssl
import urllib.request
import xmlrpc.client
from http.client import HTTPSConnection
from urllib.request import Request, urlopen

import aiohttp
import boto3
import httpx
import psycopg2
import redis
import requests
from requests import Session

API = "https://api.example.com/v1"


def download(url):
    response = requests.get(url)
    return response.text


def post_order(order):
    response = requests.post(f"{API}/orders", json=order, timeout=10)
    response.raise_for_status()
    return response.json()


def session_get(paths):
    session = Session()
    session.headers["Accept"] = "application/json"
    return [session.get(API + path).json() for path in paths]


def with_session():
    with requests.Session() as s:
        return s.get(API).status_code


def read_url(url):
    with urllib.request.urlopen(url) as response:
        return response.read()


def weather(city):
    request = Request(f"https://wttr.in/{city}?format=j1", headers={"User-Agent": "curl"})
    return json.load(urlopen(request, timeout=5))


def httpx_get(url):
    return httpx.get(url, follow_redirects=True).json()


async def httpx_async(urls):
    async with httpx.AsyncClient() as client:
        responses = await asyncio.gather(*(client.get(url) for url in urls))
    return [response.status_code for response in responses]


async def aiohttp_page(url):
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            return await response.text()


def raw_socket(host):
    with socket.create_connection((host, 80)) as connection:
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        return connection.recv(4096)


def echo_server_once():
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("127.0.0.1", 0))
    server.listen()
    client, address = server.accept()
    return address


def certificate_of(host):
    return ssl.get_server_certificate((host, 443))


def send_mail(message):
    with smtplib.SMTP("mail.example.com", 587) as server:
        server.starttls()
        server.send_message(message)


def list_ftp(host):
    ftp = ftplib.FTP(host)
    ftp.login()
    return ftp.nlst()


def http_client():
    connection = HTTPSConnection("example.com")
    connection.request("GET", "/")
    return connection.getresponse().status


def query_users(dsn):
    with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM users")
        return cursor.fetchall()


def cached_value(key):
    client = redis.Redis(host="localhost")
    return client.get(key)


def upload(path, bucket):
    s3 = boto3.client("s3")
    s3.upload_file(path, bucket, path)


def resolve(host):
    return socket.gethostbyname(host)


def remote_sum(a, b):
    proxy = xmlrpc.client.ServerProxy("http://localhost:8000/")
    return proxy.add(a, b)


def _get_json(path):
    response = requests.get(f"{API}/{path}")
    return response.json()


def user_names():
    return [user["name"] for user in _get_json("users")]


def price_or_default(cache, symbol):
    if symbol in cache:
        return cache[symbol]
    price = requests.get(f"{API}/prices/{symbol}").json()["price"]
    cache[symbol] = price
    return price


class WeatherClient:
    def __init__(self, key):
        self.key = key
        self.session = requests.Session()

    def today(self, city):
        answer = self.session.get(f"{API}/today", params={"q": city, "key": self.key})
        return answer.json()

    def maximum(self, city):
        return self.today(city)["max"]


def fetch_with_retry(url, attempts=3):
    for attempt in range(attempts):
        try:
            return requests.get(url, timeout=5)
        except requests.ConnectionError:
            if attempt == attempts - 1:
                raise
    return None


async def open_stream(host):
    reader, writer = await asyncio.open_connection(host, 7)
    writer.write(b"ping")
    data = await reader.read(4)
    writer.close()
    return data
