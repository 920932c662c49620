# The largest even Fibonacci number below a bound.
def fibonacci(bound):
    a, b = 1, 2
    while a < bound:
        yield a
        a, b = b, a + b


print("begin")
print(max(number for number in fibonacci(4000) if number % 2 == 0))
