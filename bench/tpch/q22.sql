-- Customers who may buy again. The country is the first two digits of the phone number, a category.
SELECT c_phone AS cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM customer
WHERE c_phone IN ('13', '31', '23', '29', '30', '18', '17')
  AND c_acctbal > (
      SELECT avg(c_acctbal) FROM customer
      WHERE c_acctbal > 0.00 AND c_phone IN ('13', '31', '23', '29', '30', '18', '17')
  )
  AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
GROUP BY c_phone
ORDER BY cntrycode
